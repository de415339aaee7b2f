"""How a served table is partitioned, and what cannot be. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headrace.catalog.records import OutputColumn, StreamTable
from headrace.errors import UserError
from headrace.publish.partition_scheme import AHEAD, DROP_EMPTY, OPTION, Scheme, scheme_of

# Two values of these are equal just where their texts are.
LISTED = (
    *("boolean", "smallint", "integer", "bigint", "date", "uuid", "enum"),
    *("text", "character varying", "character"),
)
TIMES = ("date", "timestamp", "timestamptz")
INTEGERS = ("smallint", "integer", "bigint")


def partition_of(table: StreamTable) -> tuple[Scheme, OutputColumn] | None:
    """Return the scheme of a table and its column, if it is partitioned."""
    scheme = scheme_of(table.options)
    if scheme is None:
        return None
    column = next((column for column in table.columns if column.name == scheme.column), None)
    return None if column is None else (scheme, column)


def check_partition(columns: Sequence[OutputColumn], options: Mapping[str, Any]) -> None:
    """Refuse a column that is not in the result, or whose type cannot be partitioned so."""
    scheme = scheme_of(options)
    if scheme is None or not scheme.is_range:
        for option in (AHEAD, DROP_EMPTY):
            if options.get(option) and (scheme is None or option == AHEAD):
                ranges = " by ranges" if option == AHEAD else ""
                raise UserError(
                    "invalid-option",
                    f"{option} is for stream tables that are partitioned{ranges}",
                    hint="Such as partition_by = 'month(day)'.",
                )
    if scheme is None:
        return
    column = next((column for column in columns if column.name == scheme.column), None)
    if column is None:
        raise UserError(
            "unknown-column",
            f"{OPTION} names column {scheme.column}, which the query does not give",
            hint=f"Its columns are {', '.join(column.name for column in columns)}.",
        )
    kinds: tuple[str, ...] = LISTED
    if scheme.is_range:
        kinds = TIMES if scheme.unit is not None else INTEGERS
    if column.type.kind not in kinds:
        method = f" by {scheme.unit or 'width'}" if scheme.is_range else ""
        raise UserError(
            "unsupported-type",
            f"a stream table cannot be partitioned{method} by column {scheme.column},"
            f" which is {column.served}",
            hint=f"It can be by one of type {', '.join(kinds[:-1])} or {kinds[-1]}: cast it.",
        )
