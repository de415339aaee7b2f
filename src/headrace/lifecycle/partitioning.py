"""Derive what `partition_by` means for logs and rebuilds, and take over partitions of a source.

`partition_by = source` copies the scheme of the partitioned table that the query reads, if the
column is in the result. The scheme is looked up once and kept with the table: later changes of the
source's partitions do not affect it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from psycopg import Connection

from headrace.algebra.scalar import Column
from headrace.catalog.records import OutputColumn, Relation, Source, StreamTable
from headrace.delta.origins import origins_of
from headrace.engine import HOME
from headrace.errors import UserError
from headrace.lifecycle.name_resolver import NameResolver
from headrace.publish.partition_scheme import OPTION, SOURCE, UNITS, Scheme, parse_scheme, scheme_of
from headrace.relations.definition import Definition, Input


def stored_apart(tables: Iterable[StreamTable], relations: Iterable[Relation]) -> dict[str, str]:
    """Return, for logs of partitioned tables, the stored column that partitions them."""
    visible = {relation.id: relation.visible for relation in relations}
    columns = {}
    for table in tables:
        scheme = scheme_of(table.options)
        for column, stored in zip(table.columns, visible[table.relation], strict=True):
            if scheme is not None and column.name == scheme.column:
                columns[table.relation] = stored
    return columns


def partitions_differ(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Return whether new options request other partitions than the old ones."""
    return not same_partitions(old.get(OPTION), new.get(OPTION))


def same_partitions(old: str | None, new: str | None) -> bool:
    """Return whether the old value of `partition_by` satisfies the new one."""
    if old is None or new != SOURCE:
        return old == new
    scheme = parse_scheme(old)
    return old == SOURCE or (scheme is not None and scheme.taken_over)


def needs_rebuild(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Return whether new options request other partitions or other rows."""
    by_value = [options.get("unspecified_order") == "by_value" for options in (old, new)]
    return partitions_differ(old, new) or by_value[0] != by_value[1]


_PARTITIONED = """
SELECT p.partstrat, p.partattrs::text, ARRAY(
    SELECT pg_get_expr(c.relpartbound, c.oid)
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = p.partrelid AND c.relispartition
)
FROM pg_partitioned_table p
WHERE p.partrelid = %s
"""


def take_over(
    resolver: NameResolver,
    inputs: Iterable[Input],
    definition: Definition,
    columns: Sequence[OutputColumn],
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the options with the scheme of an input in the place of `source`.

    A result with a column of that name is partitioned by the column.
    """
    recorded_options = dict(options)
    if recorded_options.get(OPTION) != SOURCE or any(column.name == SOURCE for column in columns):
        return recorded_options
    output_names = _shown(definition, columns)
    schemes = {
        origin.relation: column_scheme
        for origin in inputs
        if (column_scheme := _scheme(resolver, origin)) is not None
    }
    for relation, (physical, scheme) in schemes.items():
        name = output_names.get((relation, physical))
        if name is not None:
            return {**recorded_options, OPTION: str(replace(scheme, column=name, taken_over=True))}
    raise UserError(
        "invalid-option",
        "the result has no column that a table of the query is partitioned by",
        detail="Taken over are partitions by the values of one column, and by ranges of it that"
        " are days, weeks, months, years or as many integers each.",
        hint="Name a column, or a range such as month(day).",
    )


def _shown(definition: Definition, columns: Sequence[OutputColumn]) -> dict[tuple[str, str], str]:
    """Return the output names of inputs' columns, by relation and physical name."""
    output_names = {}
    for column, output in zip(definition.plan.columns, columns, strict=True):
        origins = origins_of(definition.plan, (), (column,))
        if origins is None or len(origins.origins) != 1:
            continue
        (origin,) = origins.origins
        if isinstance(origin.values[0], Column):
            output_names[origin.scan.relation, origin.columns[0]] = output.name
    return output_names


def _scheme(resolver: NameResolver, origin: Input) -> tuple[str, Scheme] | None:
    """Return the physical column that an input is partitioned by, and how."""
    if isinstance(origin, StreamTable):
        scheme = scheme_of(origin.options)
        names = [column.name for column in origin.columns]
        if scheme is None or scheme.column not in names:
            return None
        return f"c{names.index(scheme.column) + 1}", scheme
    if origin.database == HOME:
        return _source_scheme(resolver.home, origin)
    database = dict(resolver.others.values())[origin.database]
    with database.session() as connection:
        return _source_scheme(connection, origin)


def _source_scheme(connection: Connection[Any], source: Source) -> tuple[str, Scheme] | None:
    row = connection.execute(_PARTITIONED, [source.oid]).fetchone()
    if row is None or not row[1].isdigit():
        return None
    strategy, number, bounds = row
    column = next((c for c in source.columns if c.number == int(number)), None)
    if column is None or column.type is None:
        return None
    if strategy == "l":
        return column.physical, Scheme("")
    if strategy != "r":
        return None
    scheme = range_scheme(list(_ranges(bounds)))
    return None if scheme is None else (column.physical, scheme)


def _ranges(bounds: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the bounds of ranges that have both."""
    for bound in bounds:
        low, to, high = (
            bound.removeprefix("FOR VALUES FROM (").removesuffix(")").partition(") TO (")
        )
        if to and "MINVALUE" not in low and "MAXVALUE" not in high:
            yield low.strip("'"), high.strip("'")


def range_scheme(bounds: Sequence[tuple[str, str]]) -> Scheme | None:
    """Return the scheme that all these ranges follow, without its column, or None."""
    if not bounds:
        return None
    try:
        numbers = [(int(low), int(high)) for low, high in bounds]
    except ValueError:
        return _time_scheme(bounds)
    width = numbers[0][1] - numbers[0][0]
    even = all(high - low == width and low % width == 0 for low, high in numbers)
    return Scheme("", width=width) if even else None


def _time_scheme(bounds: Sequence[tuple[str, str]]) -> Scheme | None:
    try:
        times = [(_time(low), _time(high)) for low, high in bounds]
        for unit in UNITS:
            if all(_begins(unit, low) and _next(unit, low) == high for low, high in times):
                return Scheme("", unit=unit)
    except (ValueError, OverflowError):
        # Beyond the years that Python has.
        return None
    return None


def _time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def _begins(unit: str, time: datetime) -> bool:
    midnight = time == time.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "week":
            return midnight and time.weekday() == 0
        case "month":
            return midnight and time.day == 1
        case "year":
            return midnight and (time.month, time.day) == (1, 1)
        case _:
            return midnight


def _next(unit: str, time: datetime) -> datetime:
    match unit:
        case "month":
            return (time + timedelta(days=31)).replace(day=1)
        case "year":
            return time.replace(year=time.year + 1)
        case _:
            return time + timedelta(days=7 if unit == "week" else 1)
