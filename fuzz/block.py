"""A SELECT in the making: its clauses, and what each name means in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fuzz.relations import Order
from fuzz.terms import Ref

FROM, WHERE, GROUP, WINDOW, DISTINCT, ORDER = range(6)
LONG = 160
Texts = Mapping[str, str]


@dataclass(frozen=True)
class Block:
    """A SELECT in the making; `columns` gives each name its text. `level` is the last clause."""

    source: str
    columns: Texts
    level: int = FROM
    where: tuple[str, ...] = ()
    group: str = ""
    having: tuple[str, ...] = ()
    distinct: str = ""
    tail: str = ""
    raw: str | None = None
    plain: bool = True
    joined: bool = False
    keys: frozenset[str] = frozenset()
    calls: tuple[str, ...] = ()

    @property
    def crowded(self) -> bool:
        """Whether its columns are better named before they are used again."""
        return any(len(text) > LONG or "SELECT" in text for text in self.columns.values())

    def select(self, names: Iterable[str], labels: Iterable[str] | None = None) -> str:
        """The SELECT that shows these columns."""
        names = tuple(names)
        if self.raw is not None:
            return self.raw + self.tail
        shown = ", ".join(
            self.columns[name] if self.columns[name].endswith(f".{label}") else
            f"{self.columns[name]} AS {label}"
            for name, label in zip(names, names if labels is None else labels, strict=True)
        )  # fmt: skip
        text = f"SELECT {self.distinct}{shown} FROM {self.source}"
        if self.where:
            text += f" WHERE {' AND '.join(self.where)}"
        if self.group:
            text += f" GROUP BY {self.group}"
        elif self.level >= GROUP and self.calls and not any(c in text for c in self.calls):
            text += " GROUP BY ()"
        if self.having:
            text += f" HAVING {' AND '.join(self.having)}"
        return text + self.tail


def columns_of(alias: str, fields: tuple[tuple[str, Ref], ...]) -> dict[str, str]:
    return {ref.name: f"{alias}.{name}" for name, ref in fields}


def is_plain(text: str) -> bool:
    return text.replace(".", "").replace("_", "").isalnum() and not text[0].isdigit()


def has_column(text: str) -> bool:
    return is_plain(text) or re.search(r"[a-z]\d*\.[a-z]", text) is not None


def ordered(order: Order, text: str) -> str:
    return f"{text}{order.suffix}"
