"""One comparison of two bags, and how it came out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headrace.spark.run import TooLarge
from headrace.types import Type
from headrace.verify.difference import Row, is_inexact, remaining, weighted_rows

MOST_DIFFERENCES = 100_000
"""The number that a receipt gives for either side if more rows differ."""
SAMPLE = 5
SOURCE = "source "
"""The prefix of the names of comparisons of sources with their live tables."""


@dataclass(frozen=True)
class Comparison:
    """One comparison of two bags: rows only in the first (missing) and only in the second."""

    what: str
    missing: int
    surplus: int
    sample: tuple[dict[str, Any], ...] = ()

    @property
    def equal(self) -> bool:
        return not self.missing and not self.surplus


def compared(
    what: str,
    difference: pa.Table | TooLarge,
    names: Sequence[str],
    types: Sequence[Type],
    *,
    exact: bool = False,
    digits: bool = False,
) -> Comparison:
    """Return the comparison for the weighted difference of the two bags.

    Float columns are allowed their tolerance, unless nothing was computed and they must be
    `exact`. With `digits`, numerics that are right to some digits only are allowed theirs, too.
    """
    if isinstance(difference, TooLarge):
        return Comparison(what, difference.limit, difference.limit)
    if exact or not any(is_inexact(type_, digits=digits) for type_ in types):
        # The first column; one of the table may have its name.
        weights = difference.column(0)
        missing, surplus = (_total(weights, side) for side in (pc.greater, pc.less))
        sample = weighted_rows(difference.slice(0, SAMPLE))
        return Comparison(what, missing, -surplus, _shown(sample, names))
    rows = remaining(difference, types, digits=digits, most=MOST_DIFFERENCES)
    if rows is None:
        return Comparison(what, MOST_DIFFERENCES, MOST_DIFFERENCES)
    return Comparison(
        what,
        sum(weight for weight, _ in rows if weight > 0),
        -sum(weight for weight, _ in rows if weight < 0),
        _shown(rows[:SAMPLE], names),
    )


def _total(weights: pa.ChunkedArray, side: Callable[..., Any]) -> int:
    """Return the sum of the weights on one side of zero."""
    return pc.sum(weights.filter(side(weights, 0))).as_py() or 0


def _shown(rows: Sequence[Row], names: Sequence[str]) -> tuple[dict[str, Any], ...]:
    return tuple(
        {"copies": weight, **dict(zip(names, map(str, values), strict=True))}
        for weight, values in rows
    )
