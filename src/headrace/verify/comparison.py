"""One comparison of two bags, and how it came out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headrace.spark.run import TooLarge
from headrace.types import Type
from headrace.verify.difference import remaining, weighted_rows

MOST_DIFFERENCES = 100_000
SAMPLE = 5


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
    """A comparison from the weighted difference of the two bags.

    Float columns are allowed their tolerance, unless nothing was computed and they must be
    `exact`. With `digits` so are numerics that are right to some digits only.
    """
    if isinstance(difference, TooLarge):
        return Comparison(what, difference.limit, difference.limit)
    rows = weighted_rows(difference) if exact else remaining(difference, types, digits=digits)
    return Comparison(
        what,
        sum(weight for weight, _ in rows if weight > 0),
        -sum(weight for weight, _ in rows if weight < 0),
        tuple(
            {"copies": weight, **dict(zip(names, map(str, values), strict=True))}
            for weight, values in rows[:SAMPLE]
        ),
    )
