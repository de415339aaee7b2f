"""A smaller example that fails in the same way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from fuzz.changes import Batch
from fuzz.example import Example
from fuzz.from_clause import From
from fuzz.from_clause import smaller as smaller_from
from fuzz.inside import children, scalars, with_children, with_scalars
from fuzz.relations import (
    Aggregate,
    Distinct,
    Extend,
    Filter,
    Fit,
    Join,
    Relation,
    Scan,
    SetOperation,
    TopK,
    Window,
)
from fuzz.repair import repair
from fuzz.terms import Part, Query, Ref, Scalar, Term, null, parts_of
from fuzz.write import write


@dataclass(frozen=True)
class Case:
    """What an example is made of, as far as it can be made smaller."""

    tables: tuple[str, ...]
    rows: tuple[str, ...]
    view: Relation
    batches: tuple[Batch, ...]
    prefix: str = "s"

    @property
    def example(self) -> Example:
        written = write(self.view, self.prefix)
        return Example((*self.tables, *self.rows), written.needed, written.query, self.batches)


def shrink(case: Case, fails: Callable[[Example], bool], seconds: float = 60.0) -> Case:
    """The smallest case found in that time for which `fails` is still true."""
    end = time.monotonic() + seconds
    tried: set[str] = set()

    def try_(candidate: Case) -> bool:
        script = candidate.example.script
        if script in tried:
            return False
        tried.add(script)
        return fails(candidate.example)

    smaller = True
    while smaller and time.monotonic() < end:
        smaller = False
        for step in (_views, _batches, _rows, _tables):
            found = next(
                (c for c in step(case) if time.monotonic() < end and try_(c)),
                None,
            )
            if found is not None:
                case, smaller = found, True
                break
    return case


def _views(case: Case) -> Iterator[Case]:
    size = len(write(case.view, case.prefix).query)
    for view in sorted(_smaller(case.view), key=lambda one: len(repr(one))):
        mended = repair(view)
        if mended is not None and len(write(mended, case.prefix).query) < size:
            yield replace(case, view=mended)


def _batches(case: Case) -> Iterator[Case]:
    for i, batch in enumerate(case.batches):
        yield replace(case, batches=case.batches[:i] + case.batches[i + 1 :])
        for j in range(len(batch)):
            less = batch[:j] + batch[j + 1 :]
            yield replace(case, batches=(*case.batches[:i], less, *case.batches[i + 1 :]))


def _rows(case: Case) -> Iterator[Case]:
    length = len(case.rows)
    part = (length + 1) // 2
    while part:
        for start in range(0, length, part):
            yield replace(case, rows=case.rows[:start] + case.rows[start + part :])
        part = part // 2


def _tables(case: Case) -> Iterator[Case]:
    for i in range(len(case.tables)):
        yield replace(case, tables=case.tables[:i] + case.tables[i + 1 :])


def _smaller(relation: Relation) -> Iterator[Relation]:
    """Trees with one operator or expression less; names may be missing in them."""
    yield from children(relation)
    for scalar in scalars(relation):
        for query in (part for part in _parts(scalar) if isinstance(part, Query)):
            yield query.relation
    match relation:
        case Aggregate(keys=keys, calls=calls, sets=sets):
            for i in range(len(calls)):
                yield replace(relation, calls=calls[:i] + calls[i + 1 :])
            if sets is not None:
                yield replace(relation, sets=None)
            elif keys:
                yield replace(relation, keys=keys[:-1])
        case Extend(added=added) | Window(added=added):
            for i in range(len(added)):
                yield replace(relation, added=added[:i] + added[i + 1 :])
        case Fit(outputs=outputs) if len(outputs) > 1:
            for i in range(len(outputs)):
                yield replace(relation, outputs=outputs[:i] + outputs[i + 1 :])
        case Scan(fields=fields) if len(fields) > 1:
            for i in range(len(fields)):
                yield replace(relation, fields=fields[:i] + fields[i + 1 :])
        case TopK(offset=offset, order=order):
            if offset:
                yield replace(relation, offset=0)
            if len(order) > 1:
                yield replace(relation, order=order[:-1])
        case SetOperation(names=names, left=Fit() as left, right=Fit() as right):
            for i in range(len(names) if len(names) > 1 else 0):
                yield replace(
                    relation,
                    names=names[:i] + names[i + 1 :],
                    left=replace(left, outputs=left.outputs[:i] + left.outputs[i + 1 :]),
                    right=replace(right, outputs=right.outputs[:i] + right.outputs[i + 1 :]),
                )
        case From():
            yield from smaller_from(relation)
        case Filter() | Join() | Distinct() | _:
            pass
    for i, scalar in enumerate(scalars(relation)):
        for less in _smaller_scalar(scalar):
            new = list(scalars(relation))
            new[i] = less
            yield with_scalars(relation, tuple(new))
    for i, child in enumerate(children(relation)):
        for small in _smaller(child):
            below = list(children(relation))
            below[i] = small
            yield with_children(relation, tuple(below))


def _smaller_scalar(scalar: Scalar) -> Iterator[Scalar]:
    if isinstance(scalar, Ref):
        return
    for part in parts_of(scalar):
        if isinstance(part, Ref | Term) and part.kind == scalar.kind:
            yield part
    if scalar.parts:
        yield Term("bool", "true") if scalar.kind == "bool" else null(scalar.kind)
    for i, part in enumerate(scalar.parts):
        for less in _smaller_part(part):
            yield replace(scalar, parts=(*scalar.parts[:i], less, *scalar.parts[i + 1 :]))


def _smaller_part(part: Part) -> Iterator[Part]:
    if isinstance(part, Query):
        for small in _smaller(part.relation):
            yield replace(part, relation=small)
    else:
        yield from _smaller_scalar(part)


def _parts(scalar: Part) -> Iterator[Part]:
    for part in parts_of(scalar):
        yield part
        yield from _parts(part)
