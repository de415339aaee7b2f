"""The one oracle: what a stream table serves is what its query says, as a bag.

Three answers are compared with what a plain SELECT reads from the served table: PostgreSQL's own
in the same snapshot, the pure evaluator's over the rows of the sources, and (through `verify`)
Spark's recompute from the relations.
"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any

import psycopg
from psycopg import sql as compose

import headrace
from headrace.catalog.records import Refresh, StreamTable
from headrace.plan.evaluate import Bag, evaluate, net
from headrace.plan.operators import Scan
from headrace.refresh.plan import UNREAD
from headrace.relations.definition import define
from headrace.types import Type

# PostgreSQL rounds quotients below 10^8 to 12 digits or more; a few less are compared.
DIGITS = Decimal(1).scaleb(-9)


def assert_followed(done: Refresh) -> None:
    """It followed the change, or nothing had changed that its query reads."""
    unread = (UNREAD.mode, UNREAD.reason)
    assert done.mode == "DIFFERENTIAL" or (done.mode, done.reason) == unread


def comparable(value: Any, type_: Type) -> Any:
    """The value up to the stated exceptions: rounded numerics and float aggregates."""
    if value is None:
        return None
    if type_.element is not None:
        return tuple(comparable(element, type_.element) for element in value)
    if type_.rounded:
        return value.quantize(DIGITS)
    if type_.is_float:
        return f"{value:.9g}" if value == value else "nan"
    if type_.kind == "character":
        return value.ljust(type_.length or 0)
    if isinstance(value, memoryview):
        return bytes(value)
    return value


def bag(rows: Any, types: list[Type]) -> Counter[tuple[Any, ...]]:
    return Counter(
        tuple(comparable(value, type_) for value, type_ in zip(row, types, strict=True))
        for row in rows
    )


def assert_served(hr: headrace.Headrace, sql: psycopg.Connection, name: str) -> None:
    """The served table equals PostgreSQL's answer and the evaluator's, in one snapshot."""
    state = hr._engine.catalog.state()
    table = state.stream_table("public", name)
    assert table is not None
    types = [column.type for column in table.columns]
    with sql.transaction():
        sql.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        served = bag(
            sql.execute(compose.SQL("SELECT * FROM {}").format(compose.Identifier(name))), types
        )
        expected = bag(sql.execute(table.query), types)
        assert served == expected, difference(table, served, expected)
        evaluated: Counter[tuple[Any, ...]] = Counter()
        plan = define(table, state).plan
        for row, weight in net(evaluate(plan, lambda scan: live(state, sql, scan))).items():
            evaluated[tuple(map(comparable, row, types))] += weight
        assert evaluated == expected, difference(table, evaluated, expected)


def live(state: Any, sql: psycopg.Connection, scan: Scan) -> Bag:
    """The rows of a source, or of another stream table, as they are now."""
    source = next(s for s in (*state.sources, *state.stream_tables) if s.relation == scan.relation)
    if isinstance(source, StreamTable):
        by_physical = {f"c{i}": column.name for i, column in enumerate(source.columns, 1)}
    else:
        by_physical = {column.physical: column.name for column in source.columns}
    # What a stream table serves are the groups that its HAVING shows.
    columns = compose.SQL(", ").join(
        compose.SQL("true") if physical == "v" else compose.Identifier(by_physical[physical])
        for physical, _ in scan.fields
    )
    query = compose.SQL("SELECT {} FROM {}").format(
        columns, compose.Identifier(source.schema, source.name)
    )
    rows: Bag = Counter()
    for row in sql.execute(query):
        rows[
            tuple(_stored(value, c.type) for value, (_, c) in zip(row, scan.fields, strict=True))
        ] += 1
    return rows


def _stored(value: Any, type_: Type) -> Any:
    if isinstance(value, list):
        return tuple(value)
    stripped = type_.kind == "character" and not type_.keeps_blanks
    return value.rstrip(" ") if stripped and value is not None else value


def difference(table: StreamTable, got: Counter[Any], wanted: Counter[Any]) -> str:
    missing, surplus = wanted - got, got - wanted
    return (
        f"{table.query}\nmissing {sum(missing.values())}: {list(missing.items())[:5]}"
        f"\nsurplus {sum(surplus.values())}: {list(surplus.items())[:5]}"
    )
