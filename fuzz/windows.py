"""Window functions with their partitions, orders and frames."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fuzz.generate import Generator
from fuzz.relations import Relation, Window
from fuzz.rules import FRAMED, FRAMED_POSITIONS, FRAMES, POSITIONS, RANKINGS
from fuzz.terms import Ref, Term

SUFFIXES = ("", "", " DESC", " NULLS FIRST", " DESC NULLS LAST")


def suffix(g: Generator) -> str:
    return g.random.choice(SUFFIXES)


@dataclass(frozen=True)
class Over:
    """A partition and an order."""

    partition: tuple[Ref, ...]
    order: tuple[tuple[Ref, str], ...]

    def write(self, call: Term, frame: str, item: str | None) -> Term:
        parts = (call, *self.partition, *(ref for ref, _ in self.order))
        by = f"PARTITION BY {', '.join('{}' for _ in self.partition)} " if self.partition else ""
        order = ", ".join("{}" + after for _, after in self.order)
        return Term(call.kind, f"{{}} OVER ({by}ORDER BY {order}{frame})", parts, item)


def window(g: Generator, budget: int) -> Relation:
    """One to three window functions over one or several partitionings.

    Equal rows come in any order, and in another one for each window: so functions that look at
    places share one window.
    """
    child = g.comparable(g.relation("window", budget))
    total = over(g, child.columns, len(child.columns))
    calls = [_call(g, child.columns, total) for _ in range(g.random.choice((1, 2, 2, 3)))]
    partitions = {window.partition for window, _ in calls}
    items = ("several partitionings",) if len(partitions) > 1 else ()
    added = tuple((g.ref(call.kind), call) for _, call in calls)
    return g.narrow(Window(child, added, "window", items), 6)


def over(g: Generator, columns: tuple[Ref, ...], most: int) -> Over:
    """A window with at most so many columns of order."""
    keys = [ref for ref in columns if ref.kind != "float"]
    partition = g.random.sample(keys, min(len(keys), g.random.choice((0, 1, 1))))
    order = g.random.sample(columns, min(len(columns), most))
    return Over(tuple(partition), tuple((ref, suffix(g)) for ref in order))


def _call(g: Generator, columns: tuple[Ref, ...], total: Over) -> tuple[Over, Term]:
    family = g.random.choice((RANKINGS, POSITIONS, FRAMED, FRAMED, FRAMED_POSITIONS))
    call = g.terms.apply(g.terms.pick(family, columns), columns, g.random.choice((0, 0, 1)))
    frame, item = "", None
    if family in (FRAMED, FRAMED_POSITIONS):
        weights = {pair: g.coverage.rare(pair[1]) for pair in FRAMES}
        frame, item = g.coverage.least(g.random, weights)
    number = g.terms.column(columns, "int")
    if "RANGE BETWEEN 1" in frame and (number is None or family is FRAMED_POSITIONS):
        frame, item = " ROWS UNBOUNDED PRECEDING", "rows frame"
    if family in (POSITIONS, FRAMED_POSITIONS) or "ROWS" in frame:
        return total, total.write(call, frame, item)
    chosen = over(g, columns, g.random.choice((1, 1, 2)))
    if "RANGE BETWEEN 1" in frame and number is not None:
        chosen = replace(chosen, order=((number, suffix(g)),))
    return chosen, chosen.write(call, frame, item)
