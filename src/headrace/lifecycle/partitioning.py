"""What partitions of a stream table mean for its log, and when it has to be rebuilt for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from headrace.catalog.records import Relation, StreamTable
from headrace.publish.partition_scheme import OPTION, SOURCE, parse_scheme, scheme_of


def stored_apart(tables: Iterable[StreamTable], relations: Iterable[Relation]) -> dict[str, str]:
    """For the logs of partitioned tables, the stored column that rows are kept apart by."""
    visible = {relation.id: relation.visible for relation in relations}
    found = {}
    for table in tables:
        scheme = scheme_of(table.options)
        for column, stored in zip(table.columns, visible[table.relation], strict=True):
            if scheme is not None and column.name == scheme.column:
                found[table.relation] = stored
    return found


def partitions_differ(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether other options ask for other partitions; those taken over from a source stay so."""
    return not same_partitions(old.get(OPTION), new.get(OPTION))


def same_partitions(old: str | None, new: str | None) -> bool:
    """Whether a table that is partitioned in the old way is so in the new one."""
    if old is None or new != SOURCE:
        return old == new
    scheme = parse_scheme(old)
    return old == SOURCE or (scheme is not None and scheme.taken_over)


def needs_rebuild(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether other options ask for other partitions or other rows."""
    by_value = [options.get("unspecified_order") == "by_value" for options in (old, new)]
    return partitions_differ(old, new) or by_value[0] != by_value[1]
