"""What a stream table can be partitioned by: a column of the result whose values are told apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headrace.catalog.records import OutputColumn, Relation, StreamTable
from headrace.errors import UserError

OPTION = "partition_by"
# Two values of these are equal just where their texts are.
KINDS = (
    *("boolean", "smallint", "integer", "bigint", "date", "uuid", "enum"),
    *("text", "character varying", "character"),
)


def check_partition(columns: Sequence[OutputColumn], options: Mapping[str, Any]) -> None:
    """Refuse a column that is not in the result, or whose type cannot be partitioned by."""
    name = options.get(OPTION)
    if name is None:
        return
    column = next((one for one in columns if one.name == name), None)
    if column is None:
        raise UserError(
            "unknown-column",
            f"{OPTION} names column {name}, which the query does not give",
            hint=f"Its columns are {', '.join(one.name for one in columns)}.",
        )
    if column.type.kind not in KINDS:
        raise UserError(
            "unsupported-type",
            f"a stream table cannot be partitioned by column {name}, which is {column.served}",
            hint=f"It can be by one of type {', '.join(KINDS[:-1])} or {KINDS[-1]}: cast it.",
        )


def stored_apart(tables: Iterable[StreamTable], relations: Iterable[Relation]) -> dict[str, str]:
    """For the logs of partitioned tables, the stored column that rows are kept apart by."""
    visible = {relation.id: relation.visible for relation in relations}
    return {
        table.relation: stored
        for table in tables
        for column, stored in zip(table.columns, visible[table.relation], strict=True)
        if column.name == table.options.get(OPTION)
    }


def partitions_differ(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether other options ask for other partitions."""
    return old.get(OPTION) != new.get(OPTION)


def needs_rebuild(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether other options ask for other partitions or other rows."""
    by_value = [options.get("unspecified_order") == "by_value" for options in (old, new)]
    return partitions_differ(old, new) or by_value[0] != by_value[1]
