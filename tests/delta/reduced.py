"""Inputs restricted to what reaches the change, by the definition: row by row, in Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from headrace.delta.reduction import GIVEN, Path, Restriction, reduction
from headrace.plan.evaluate import Bag, evaluate, net
from headrace.plan.operators import Operator, Scan
from headrace.plan.scalar import Value

Read = Callable[[Scan], Bag]
Key = tuple[Value, ...]


def scans(plan: Operator, path: Path = ()) -> dict[Path, Scan]:
    if isinstance(plan, Scan):
        return {path: plan}
    found: dict[Path, Scan] = {}
    for place, child in enumerate(plan.children):
        found |= scans(child, (*path, place))
    return found


def chosen(plan: Operator, read: Read) -> dict[Path, Bag]:
    """The rows that each restricted scan is left with, all of its columns."""
    rows = {path: read(scan) for path, scan in scans(plan).items() if scan.version in GIVEN}
    places = {path: [name for name, _ in scan.fields] for path, scan in scans(plan).items()}

    def keys_of(one: Restriction) -> set[Key]:
        keys = {
            tuple(row[places[origin.path].index(name)] for name in origin.columns)
            for origin in one.origins
            for row, weight in rows[origin.path].items()
            if weight
        }
        return keys | {(None,) * len(one.columns)} if one.padded else keys

    for one in reduction(plan).restrictions:
        keys, at = keys_of(one), [places[one.path].index(name) for name in one.columns]
        rows[one.path] = Counter(
            {
                row: weight
                for row, weight in read(one.scan).items()
                if (key := tuple(row[i] for i in at)) in keys and (one.null_safe or None not in key)
            }
        )
    return rows


def reduced(plan: Operator, read: Read) -> Read:
    """`read` with every input reduced to the rows that some scan of it is left with."""
    rows, places = chosen(plan, read), scans(plan)
    whole = {(scan.relation, scan.version) for path, scan in places.items() if path not in rows}

    def read_less(scan: Scan) -> Bag:
        if (scan.relation, scan.version) in whole or scan.version in GIVEN:
            return read(scan)
        # Scans of one input may have different columns: rows are told apart by all of them.
        fields = dict(
            field
            for other in places.values()
            if (other.relation, other.version) == (scan.relation, scan.version)
            for field in other.fields
        )
        every = replace(scan, fields=tuple(sorted(fields.items())))
        names = [name for name, _ in every.fields]
        left: Bag = Counter()
        for row, weight in read(every).items():
            if any(
                _part(row, names, other) in rows[path]
                for path, other in places.items()
                if (other.relation, other.version) == (scan.relation, scan.version)
            ):
                left[_part(row, names, scan)] += weight
        return left

    return read_less


def _part(row: Key, names: list[str], scan: Scan) -> Key:
    return tuple(row[names.index(name)] for name, _ in scan.fields)


def evaluated(plan: Operator, read: Read) -> Bag:
    """The plan's rows, which must be the same over what is left of its inputs."""
    rows = evaluate(plan, read)
    less = evaluate(plan, reduced(plan, read))
    assert net(Counter(less)) == net(Counter(rows))
    return rows
