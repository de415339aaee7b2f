"""Expressions as a query writes them, with the rows to try them on."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from headrace.algebra.scalar import Value
from headrace.types import Type

Row = tuple[Value, ...]


@dataclass(frozen=True)
class Spelled:
    """Expressions over the same columns and rows."""

    types: tuple[Type, ...]
    rows: tuple[Row, ...]
    texts: tuple[str, ...]


def over(types: Sequence[Type], values: Sequence[Sequence[Value]], *texts: str) -> Spelled:
    """Every combination of values, NULLs included."""
    columns = [(None, *column) for column in values]
    return Spelled(tuple(types), tuple(itertools.product(*columns)), texts)
