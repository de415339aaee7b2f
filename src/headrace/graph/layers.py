"""Stream tables stratum by stratum."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from headrace.catalog.records import StreamTable
from headrace.graph.strata import strata


def by_stratum(ordered: Sequence[StreamTable]) -> tuple[tuple[StreamTable, ...], ...]:
    """Tables, given each after those it reads, by their strata from the lowest on.

    A table whose edges are not known takes all of its inputs as ones that it is not monotone in.
    """
    known = {table.relation for table in ordered}
    found = strata(
        {
            table.relation: {
                one: table.edges.get(one, ("unknown",)) for one in table.inputs if one in known
            }
            for table in ordered
        }
    )
    layered = sorted(ordered, key=lambda table: found[table.relation])
    groups = groupby(layered, lambda table: found[table.relation])
    return tuple(tuple(group) for _, group in groups)
