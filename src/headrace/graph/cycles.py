"""Cycles: stream tables that read each other, which are computed together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import groupby

from headrace.catalog.records import StreamTable
from headrace.graph.components import components

Reads = tuple[tuple[str, tuple[str, ...]], ...]
Group = tuple[StreamTable, ...]
"""One stream table, or all of a cycle."""


def cycles(tables: Iterable[StreamTable]) -> dict[str, frozenset[str]]:
    """For the relation of every stream table that is in a cycle, all of that cycle's."""
    return _cycles(tuple((table.relation, table.inputs) for table in tables))


@lru_cache(maxsize=64)
def _cycles(reads: Reads) -> dict[str, frozenset[str]]:
    found = (one.members for one in components(dict(reads)) if one.is_cyclic)
    return {name: frozenset(members) for members in found for name in members}


def grouped(ordered: Sequence[StreamTable], tables: Iterable[StreamTable]) -> tuple[Group, ...]:
    """Tables in their order, those of a cycle together; `tables` are all that there are."""
    known = cycles(tables)
    alone = {table.relation: frozenset({table.relation}) for table in ordered}
    groups = groupby(ordered, lambda table: known.get(table.relation, alone[table.relation]))
    return tuple(tuple(group) for _, group in groups)
