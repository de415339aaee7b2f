"""Inputs restricted to what reaches the change, by the definition: row by row, in Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

from headrace.algebra.scalar import Scalar, Value
from headrace.delta.drop_terms import drop_terms
from headrace.delta.origins import Path
from headrace.delta.reduction import GIVEN, Restriction, reduction
from headrace.plan.evaluate import Bag, evaluate, net, scalar
from headrace.plan.operators import Operator, Scan

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
    """The rows that each restricted scan is left with, all of its columns.

    Of several ways the one with the fewest keys is taken, and conditions make keys fewer still.
    """
    every, found = scans(plan), reduction(plan)
    for one in found.restrictions:
        # The keys are a table, whose columns these are.
        assert len(set(one.columns)) == len(one.columns), one
    places = {path: [name for name, _ in scan.fields] for path, scan in every.items()}
    rows = {path: read(scan) for path, scan in every.items() if scan.version in GIVEN}
    conditions = dict(found.conditions)

    def keys_of(one: Restriction) -> set[Key]:
        keys = {
            tuple(scalar(value, values) for value in origin.values)
            for origin in one.origins
            for row, weight in rows[origin.path].items()
            for values in (dict(zip(every[origin.path].columns, row, strict=True)),)
            if weight and passes(every[origin.path], conditions.get(origin.path, ()), row)
        }
        return keys | {(None,) * len(one.columns)} if one.padded else keys

    while ready := [
        one
        for one in found.restrictions
        if one.path not in rows and all(origin.path in rows for origin in one.origins)
    ]:
        path = ready[-1].path
        keys, one = min(
            ((keys_of(one), one) for one in ready if one.path == path), key=lambda way: len(way[0])
        )
        at = [places[path].index(name) for name in one.columns]
        rows[path] = Counter(
            {
                row: weight
                for row, weight in read(one.scan).items()
                if (key := tuple(row[i] for i in at)) in keys and (one.null_safe or None not in key)
            }
        )
    assert all((s.relation, s.version) in found.whole for p, s in every.items() if p not in rows)
    return rows


def passes(scan: Scan, conditions: Iterable[Scalar], row: Key) -> bool:
    values = dict(zip(scan.columns, row, strict=True))
    return all(scalar(condition, values) is True for condition in conditions)


def reduced(plan: Operator, read: Read) -> Read:
    """`read` with every input reduced to the rows that some scan of it is left with."""
    rows, places = chosen(plan, read), scans(plan)
    whole = {(scan.relation, scan.version) for path, scan in places.items() if path not in rows}

    def read_less(scan: Scan) -> Bag:
        if (scan.relation, scan.version) in whole or scan.version in GIVEN:
            return read(scan)
        # Scans of one input may have different columns: all of them distinguish rows.
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
    less = reduced(plan, read)
    assert net(Counter(evaluate(plan, less))) == net(Counter(rows))
    # One of the inputs is small, say, and therefore read whole.
    small = min((scan.relation for scan in scans(plan).values()), default=None)
    assert net(Counter(evaluate(plan, but_whole(small, read, less)))) == net(Counter(rows))
    shorter = drop_terms(plan, without_rows(plan, read))
    assert shorter.columns == plan.columns
    assert net(Counter(evaluate(shorter, read))) == net(Counter(rows))
    assert net(Counter(evaluate(shorter, less))) == net(Counter(rows))
    return rows


def without_rows(plan: Operator, read: Read) -> frozenset[Path]:
    """The scans of which no row is left that matters."""
    every, conditions = scans(plan), dict(reduction(plan).conditions)
    return frozenset(
        path
        for path, rows in chosen(plan, read).items()
        if not any(
            weight and passes(every[path], conditions.get(path, ()), row)
            for row, weight in rows.items()
        )
    )


def but_whole(relation: str | None, read: Read, less: Read) -> Read:
    return lambda scan: read(scan) if scan.relation == relation else less(scan)
