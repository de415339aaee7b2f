"""Tables of events with ties in every column."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from headrace.plan.evaluate import Bag
from headrace.plan.operators import Scan
from headrace.types import BIGINT, DOUBLE, INTEGER, TEXT, Type, numeric
from tests.query.shop import Shop, Table


def _rows() -> Iterator[tuple[Any, ...]]:
    chance = random.Random(7)
    for id_ in range(1, 26):
        yield (
            id_,
            chance.choice((None, 1, 1, 2, 3)),
            chance.choice((None, -1, 0, 0, 1, 2, 5)),
            chance.choice((None, Decimal("0.00"), Decimal("1.50"), Decimal("-2.25"))),
            chance.choice((None, 0.0, 1.5, 1.5, float("nan"), float("inf"))),
            chance.choice((None, "a", "B", "b", "")),
            chance.choice((None, *(date(2024, 1, 30) + timedelta(days=n) for n in range(5)))),
            chance.choice((None, 2**62, -(2**62), 0)),
        )


EVENTS = Table(
    "events",
    tuple(
        (name, type_, type_.sql + (' COLLATE "C"' if type_ == TEXT else ""))
        for name, type_ in (
            ("id", INTEGER),
            ("k", INTEGER),
            ("x", INTEGER),
            ("n", numeric(8, 2)),
            ("f", DOUBLE),
            ("t", TEXT),
            ("d", Type("date")),
            ("big", BIGINT),
        )
    ),
    (("id",),),
    tuple(_rows()),
)

# The same rows twice, without a key: copies of one row, and peers that differ in one column.
PAIRS = Table(
    "pairs",
    (("k", INTEGER, "integer"), ("x", INTEGER, "integer")),
    (),
    tuple((k, x) for _, k, x, *_ in EVENTS.rows),
)
TABLES = (EVENTS, PAIRS)


class Events(Shop):
    """The shop's schema with two tables more."""

    def resolve(self, schema: str | None, name: str) -> Any:
        found = next((table.bound for table in TABLES if table.name == name), None)
        return found or super().resolve(schema, name)


def read(scan: Scan) -> Bag:
    table = next(table for table in TABLES if table.bound.relation == scan.relation)
    physical = [column.physical for column in table.bound.columns]
    places = [physical.index(name) for name, _ in scan.fields]
    return Counter(tuple(row[place] for place in places) for row in table.rows)
