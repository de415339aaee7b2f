"""What a query means beyond its text: facts of the database, and what the user decided."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from sqlglot import exp

from headrace.query.refusal import refuse
from headrace.types import Collation, default_collation

UNORDERED_NOTICE = (
    "Where LIMIT, array_agg or string_agg say no order, rows are taken in the order of their"
    " columns, NULLs last and text by its bytes: unspecified_order is by_value."
)


@dataclass(frozen=True)
class Rules:
    """The default `collation` of the database, and whether an order that the text leaves open is
    that of the values, `by_value`.
    """

    collation: Collation = Collation.OTHER
    by_value: bool = False


@dataclass
class _Binding:
    rules: Rules = field(default_factory=Rules)
    ordered_by_value: bool = False


_current: ContextVar[_Binding] = ContextVar("binding", default=_Binding())  # noqa: B039


@contextmanager
def following(rules: Rules) -> Iterator[_Binding]:
    """Bind a query by these rules; what is given says afterwards which of them were needed."""
    binding = _Binding(rules)
    token = _current.set(binding)
    try:
        with default_collation(rules.collation):
            yield binding
    finally:
        _current.reset(token)


def order_by_value(what: str, node: exp.Expr, hint: str) -> None:
    """Refuse what leaves its order unspecified, unless the values are to decide."""
    binding = _current.get()
    if not binding.rules.by_value:
        message = f"{what} without ORDER BY is not maintained"
        hint = f"{hint}, or set the option unspecified_order to by_value."
        raise refuse("unsupported-query", message, node, hint)
    binding.ordered_by_value = True
