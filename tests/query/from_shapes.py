"""Random shapes of FROM: commas, joins of every kind, LATERAL, functions, parentheses, aliases.

Most references are valid; some name what PostgreSQL does not let an item see.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random

from headrace.plan.evaluate import Bag
from headrace.plan.operators import Scan
from headrace.query import BoundColumn, BoundTable, BoundView
from headrace.types import INTEGER

TABLES: dict[str, tuple[tuple[str, ...], tuple[tuple[int | None, ...], ...]]] = {
    "a": (("k", "x"), ((1, 5), (2, 1), (None, 2), (1, 5))),
    "b": (("k", "y"), ((1, 1), (3, 2), (2, None))),
    "c": (("x", "y", "z"), ((5, 1, 1), (1, 2, 9), (None, None, 3), (2, 3, 1))),
    "e": (("k",), ()),
}
JOINS = ("JOIN", "INNER JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "FULL OUTER JOIN")
KINDS = ("table", "table", "table", "query", "values", "lateral", "lateral", "function", "paren")


class FromSchema:
    """The tables, and views made of texts."""

    def __init__(self, **views: tuple[str, tuple[str, ...]]) -> None:
        self._views = views

    def resolve(self, schema: str | None, name: str) -> BoundTable | BoundView | None:
        if name in self._views:
            text, columns = self._views[name]
            return BoundView("public", name, text, columns)
        if schema not in (None, "public") or name not in TABLES:
            return None
        columns, _ = TABLES[name]
        bound = (BoundColumn(c, f"c{i}", INTEGER, "integer") for i, c in enumerate(columns, 1))
        return BoundTable(f"r_{name}", "public", name, tuple(bound), ())


def read(scan: Scan) -> Bag:
    """A scan's rows for the pure evaluator."""
    _, rows = TABLES[scan.relation.removeprefix("r_")]
    places = [int(physical.removeprefix("c")) - 1 for physical, _ in scan.fields]
    return Counter(tuple(row[place] for place in places) for row in rows)


def ddl() -> str:
    """Statements that make the tables with their rows."""
    text = ""
    for name, (columns, rows) in TABLES.items():
        text += f"CREATE TABLE {name} ({', '.join(f'{c} int' for c in columns)});\n"
        for row in rows:
            values = ", ".join("NULL" if value is None else str(value) for value in row)
            text += f"INSERT INTO {name} VALUES ({values});\n"
    return text


@dataclass(frozen=True)
class Part:
    """A part of FROM: its text, the tables that it names, and the columns of its star."""

    text: str
    tables: tuple[tuple[str, tuple[str, ...]], ...]
    columns: tuple[str, ...]

    @property
    def references(self) -> list[str]:
        return [f"{alias}.{column}" for alias, columns in self.tables for column in columns]

    @property
    def bare(self) -> list[str]:
        return [name for name in self.columns if self.columns.count(name) == 1]


@dataclass
class Shapes:
    """Writes random queries over FROM."""

    random: Random
    used: Counter[str] = field(default_factory=Counter)
    _number: int = 0

    def query(self) -> str:
        """A query over one FROM, its columns named o1, o2, …."""
        parts: list[Part] = []
        for _ in range(self.random.choice((1, 1, 2, 2, 3))):
            parts.append(self._joined(tuple(parts), 2))
        whole = _beside(parts)
        text = ", ".join(part.text for part in parts)
        if self.random.random() < 0.4:
            self.used["star"] += 1
            names = ", ".join(f"o{i}" for i in range(1, len(whole.columns) + 1))
            return f"SELECT * FROM (SELECT * FROM {text}) AS whole ({names})"
        choice = whole.references + whole.bare * 2
        shown = [self.random.choice(choice) for _ in range(self.random.randint(1, 4))]
        listed = ", ".join(f"{name} AS o{i}" for i, name in enumerate(shown, 1))
        where = self._where(choice) if self.random.random() < 0.3 else ""
        return f"SELECT {listed} FROM {text}{where}"

    def _joined(self, left: tuple[Part, ...], depth: int) -> Part:
        part = self._item(left, depth)
        for _ in range(self.random.choice((0, 1, 1, 2)) if depth else 0):
            part = self._join(part, left, depth)
        return part

    def _join(self, part: Part, left: tuple[Part, ...], depth: int) -> Part:
        join = self.random.choice(JOINS)
        style = self.random.choice(("ON", "ON", "USING", "USING", "NATURAL", "CROSS"))
        outside = join.startswith(("RIGHT", "FULL")) and style != "CROSS"
        # An item that may not read its left side sometimes tries to.
        visible = left if outside and self.random.random() < 0.9 else (*left, part)
        right = self._item(visible, depth - 1)
        nested = depth > 1 and style in ("ON", "USING") and self.random.random() < 0.2
        if nested:
            self.used["nested ON"] += 1
            right = self._join(right, visible, depth - 1)
        shared = [name for name in part.bare if name in right.bare]
        if style == "USING" and not shared:
            style = "ON"
        self.used[f"{style} {join}" if style != "CROSS" else "CROSS JOIN"] += 1
        tables = part.tables + right.tables
        if style == "NATURAL":
            using = [name for name in part.columns if name in right.columns]
            text = f"{part.text} NATURAL {join} {right.text}"
            return Part(text, tables, _merged(using, part, right))
        if style == "CROSS":
            text = f"{part.text} CROSS JOIN {right.text}"
            return Part(text, tables, part.columns + right.columns)
        if style == "USING":
            using = self.random.sample(shared, self.random.randint(1, len(shared)))
            text = f"{part.text} {join} {right.text} USING ({', '.join(using)})"
            if self.random.random() < 0.3:
                self.used["USING AS"] += 1
                alias = self._alias("u")
                text, tables = f"{text} AS {alias}", (*tables, (alias, tuple(using)))
            return Part(text, tables, _merged(using, part, right))
        both = Part("", tables, part.columns + right.columns)
        condition = self._condition(both.references + both.bare)
        text = f"{part.text} {join} {right.text} ON {condition}"
        return Part(text, tables, both.columns)

    def _item(self, left: tuple[Part, ...], depth: int) -> Part:
        kind = self.random.choice(KINDS)
        self.used[kind] += 1
        match kind:
            case "table":
                return self._table()
            case "query":
                name, (columns, _) = self.random.choice(list(TABLES.items()))
                text = f"SELECT * FROM {name}{self._where(columns)}"
                return self._named(f"({text})", columns)
            case "values":
                row = ", ".join(self._constant() for _ in "12")
                return self._named(f"(VALUES ({row}), (1, 2))", ("k", "y"), rename=True)
            case "function":
                return self._function(left)
            case "lateral":
                return self._lateral(left, depth)
        if depth < 1:
            return self._table()
        inside = self._join(self._item(left, depth - 1), left, depth)
        if self.random.random() < 0.5:
            return Part(f"({inside.text})", inside.tables, inside.columns)
        self.used["paren AS"] += 1
        return self._named(f"({inside.text})", inside.columns)

    def _table(self) -> Part:
        name, (columns, _) = self.random.choice(list(TABLES.items()))
        return self._named(name, columns)

    def _function(self, left: tuple[Part, ...]) -> Part:
        read = self._reference(left)
        lateral = self.random.choice(("", "LATERAL "))
        if self.random.random() < 0.3:
            self.used["ORDINALITY"] += 1
            call = f"{lateral}generate_series({read}, 2) WITH ORDINALITY"
            return self._named(call, ("k", "n"), rename=True)
        calls = (f"generate_series(1, {read})", f"unnest(ARRAY[{read}, 1])")
        return self._named(lateral + self.random.choice(calls), ("x",), rename=True)

    def _lateral(self, left: tuple[Part, ...], depth: int) -> Part:
        read, other = self._reference(left), self._reference(left)
        name, (columns, _) = self.random.choice(list(TABLES.items()))
        s, c = self._alias("s"), self.random.choice(columns)
        texts = [
            f"SELECT {s}.{c} AS k, {read} AS w FROM {name} {s} WHERE {s}.{c} = {other}",
            f"SELECT count(*)::int AS n, max({s}.{c}) AS k FROM {name} {s} WHERE {s}.{c} = {read}",
            f"SELECT {read} AS k, {other} AS y",
            f"SELECT {s}.{c} AS x FROM {name} {s}",
            f"SELECT {s}.{c} AS x FROM {name} {s} WHERE {s}.{c} <= {read} ORDER BY 1 LIMIT 1",
            f"VALUES ({read}), ({other})",
            f"SELECT {s}.{c} AS k FROM {name} {s} UNION SELECT {read}",
        ]
        if depth:
            inside = self._joined(left, depth - 1)
            shown = self.random.choice(inside.references)
            texts.append(f"SELECT {shown} AS k, {read} AS w FROM {inside.text}")
        text = self.random.choice(texts)
        shape = {"SELECT count": ("n", "k"), "VALUES": ("x",)}
        names = next((n for begin, n in shape.items() if text.startswith(begin)), None)
        if names is None:
            names = tuple(n for n in ("k", "w", "x", "y") if f" AS {n}" in text.split(" FROM ")[0])
        return self._named(f"LATERAL ({text})", names, rename=text.startswith("VALUES"))

    def _named(self, text: str, columns: tuple[str, ...], *, rename: bool = False) -> Part:
        alias = self._alias("t")
        if rename or self.random.random() < 0.2:
            fresh = columns if rename else tuple(self.random.choice("kxyz") for _ in columns)
            columns = fresh if len(set(fresh)) == len(fresh) else columns
            text, shown = f"{text} AS {alias}", f" ({', '.join(columns)})"
            if len(set(columns)) < len(columns):
                shown = ""
            return Part(text + shown, ((alias, columns),), columns)
        return Part(f"{text} AS {alias}", ((alias, columns),), columns)

    def _reference(self, left: tuple[Part, ...]) -> str:
        """A column to the left, or a constant."""
        choice = [name for part in left for name in part.references + part.bare]
        return self.random.choice(choice) if choice and self.random.random() < 0.8 else "2"

    def _condition(self, choice: list[str]) -> str:
        one, other = self.random.choice(choice), self.random.choice(choice)
        return self.random.choice(
            (f"{one} = {other}", f"{one} = {other}", "true", f"{one} > 1 AND {one} = {other}")
        )

    def _where(self, choice: list[str] | tuple[str, ...]) -> str:
        return f" WHERE {self.random.choice(choice)} {self.random.choice(('<>', '<='))} 2"

    def _constant(self) -> str:
        return self.random.choice(("1", "2", "NULL::int", "5"))

    def _alias(self, letter: str) -> str:
        self._number += 1
        return f"{letter}{self._number}"


def _beside(parts: list[Part]) -> Part:
    tables = tuple(table for part in parts for table in part.tables)
    return Part("", tables, tuple(name for part in parts for name in part.columns))


def _merged(using: list[str], left: Part, right: Part) -> tuple[str, ...]:
    rest = (name for name in left.columns + right.columns if name not in using)
    return (*using, *rest)
