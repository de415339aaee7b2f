"""Unnest: a function that gives several rows, for every row.    d Unnest(R) = Unnest(dR)"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from headrace.algebra.operator import Delta, Operator, Unary, require_columns
from headrace.algebra.scalar import Column, Scalar, columns_of


@dataclass(frozen=True)
class Unnest(Unary):
    """The rows of `child`, each beside every row of a table function of its columns.

    `function` is a row of `headrace.functions.TABLE_FUNCTIONS`, `outputs` the columns it gives,
    `ordinality` the number of its row, from 1. With `keep` a row for which it gives none is kept,
    padded with NULLs.
    """

    function: str
    arguments: tuple[Scalar, ...]
    outputs: tuple[Column, ...]
    ordinality: Column | None = None
    keep: bool = False

    def __post_init__(self) -> None:
        for argument in self.arguments:
            require_columns(columns_of(argument), self.child.column_set, "Unnest")

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        number = () if self.ordinality is None else (self.ordinality,)
        return (*self.child.columns, *self.outputs, *number)

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        return self.arguments

    def with_scalars(self, scalars: tuple[Scalar, ...]) -> Unnest:
        return replace(self, arguments=scalars)

    def delta(self, of: Delta) -> Operator:
        return replace(self, child=of.change(self.child))
