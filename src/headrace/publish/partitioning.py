"""How a served table is partitioned, and what cannot be. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headrace.catalog.records import OutputColumn, StreamTable
from headrace.errors import UserError
from headrace.publish.partition_scheme import AHEAD, DROP_EMPTY, OPTION, Scheme, scheme_of
from headrace.types.kinds import INTEGERS, KINDS, MOMENTS

LISTED = tuple(kind.name for kind in KINDS if kind.partitioned)
# A statement that reads all of a table locks each of its partitions and each of their indexes.
MOST_PARTITIONS = 256


def partition_of(table: StreamTable) -> tuple[Scheme, OutputColumn] | None:
    """Return the scheme of a table and its column, if it is partitioned."""
    scheme = scheme_of(table.options)
    if scheme is None:
        return None
    column = next((column for column in table.columns if column.name == scheme.column), None)
    return None if column is None else (scheme, column)


def sharing_notice(table: StreamTable) -> str | None:
    """Return the notice on partitions by a column that may have too many values, or None."""
    partition = partition_of(table)
    if partition is None:
        return None
    scheme, column = partition
    if scheme.is_range or column.type.row.few_values:
        return None
    by_range = None
    if column.type.kind == "date":
        by_range = Scheme(column.name, unit="month")
    elif column.type.is_integer:
        by_range = Scheme(column.name, width=100_000)
    better = "" if by_range is None else f"; {OPTION} = '{by_range}' makes ranges"
    return (
        f"{OPTION} gives a partition to each of the first {MOST_PARTITIONS} values"
        f" of {column.name}, and later ones share one more{better}"
    )


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
        kinds = MOMENTS if scheme.unit is not None else INTEGERS
    if column.type.kind not in kinds:
        method = f" by {scheme.unit or 'width'}" if scheme.is_range else ""
        raise UserError(
            "unsupported-type",
            f"a stream table cannot be partitioned{method} by column {scheme.column},"
            f" which is {column.served}",
            hint=f"It can be by one of type {', '.join(kinds[:-1])} or {kinds[-1]}: cast it.",
        )
