"""Loops of every shape, and random rows for the relations that they read."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

from headrace.algebra.scalar import Column, Literal
from headrace.functions import call
from headrace.plan.evaluate import Bag
from headrace.plan.loop import Loop, Variable, with_level
from headrace.plan.operators import (
    Filter,
    Join,
    Operator,
    OuterSemiAntiJoin,
    Project,
    Scan,
    UnionAll,
)
from headrace.types import INTEGER

PAIRS = ("edges", "blocked", "other", "reach", "odd", "even", "pairs")
PHYSICAL: dict[str, tuple[str, ...]] = dict.fromkeys(PAIRS, ("c1", "c2"))
PHYSICAL["paths"] = ("c1", "c2", "l")


def column(name: str) -> Column:
    return Column(name, INTEGER)


def scan(relation: str, prefix: str) -> Scan:
    return Scan(relation, (("c1", column(f"{prefix}1")), ("c2", column(f"{prefix}2"))))


def shown(child: Operator, first: str, second: str) -> Project:
    return Project(child, ((column("o1"), column(first)), (column("o2"), column(second))))


def step(relation: str, over: str = "edges") -> Operator:
    """relation(x, y), over(y, z) → (x, z)"""
    joined = Join(scan(relation, "r"), scan(over, "e"), call("=", column("r2"), column("e1")))
    return shown(joined, "r1", "e2")


def base(over: str = "edges") -> Operator:
    return shown(scan(over, "b"), "b1", "b2")


def variable(relation: str, *branches: Operator) -> Variable:
    return Variable(relation, UnionAll(branches), ("c1", "c2"))


def unblocked(relation: str) -> Operator:
    """A step over edges that no row of `blocked` forbids."""
    same = call("and", call("=", column("e1"), column("x1")), call("=", column("e2"), column("x2")))
    free = OuterSemiAntiJoin(scan("edges", "e"), scan("blocked", "x"), "anti", same)
    joined = Join(scan(relation, "r"), free, call("=", column("r2"), column("e1")))
    return shown(joined, "r1", "e2")


def guarded() -> Operator:
    """A step whose rows must have something in `other`, or be padded without."""
    joined = Join(scan("reach", "r"), scan("edges", "e"), call("=", column("r2"), column("e1")))
    padded = OuterSemiAntiJoin(
        joined, scan("other", "x"), "left", call("=", column("e2"), column("x1"))
    )
    return shown(padded, "r1", "e2")


def seen_by_itself() -> Operator:
    """Edges whose end is reached: the loop's relation is only looked for a match in."""
    met = OuterSemiAntiJoin(
        scan("edges", "e"), scan("reach", "r"), "semi", call("=", column("e1"), column("r2"))
    )
    return shown(met, "e1", "e2")


def start() -> Operator:
    first = Filter(scan("edges", "b"), call("=", column("b1"), Literal(0, INTEGER)))
    return shown(first, "b1", "b2")


SETS = {
    "transitive closure": Loop((variable("reach", base(), step("reach")),)),
    "from one node": Loop((variable("reach", start(), step("reach")),)),
    "joined with itself": Loop((variable("reach", base(), step("reach", "reach")),)),
    "two tables": Loop((variable("odd", base(), step("even")), variable("even", step("odd")))),
    "three tables": Loop(
        (
            variable("odd", base(), step("pairs", "blocked")),
            variable("even", step("odd", "other")),
            variable("pairs", step("even"), base("other")),
        )
    ),
    "blocked edges": Loop((variable("reach", base(), unblocked("reach")),)),
    "an outer join with a table outside": Loop((variable("reach", base(), guarded()),)),
    "a match in itself": Loop((variable("reach", start(), seen_by_itself()),)),
}


def levels(*, blocked: bool = False) -> Loop:
    level = Column("level", INTEGER)
    following = unblocked("paths") if blocked else step("paths")
    carried = with_level(following, "paths", level)
    following_level = call("+", level, Literal(1, INTEGER))
    one_more = Project(
        carried, tuple((c, following_level if c == level else c) for c in carried.columns)
    )
    one_more = replace(one_more, outputs=(*one_more.outputs[:-1], (column("n"), following_level)))
    first = start()
    zero = Project(first, (*((c, c) for c in first.columns), (column("n"), Literal(0, INTEGER))))
    return Loop((Variable("paths", UnionAll((zero, one_more)), ("c1", "c2", "l")),), levels=True)


def random_rows(random: Random, nodes: int, rows: int, *, forward: bool = False) -> Bag:
    found: Bag = Counter()
    for _ in range(rows):
        a, b = random.randrange(nodes), random.randrange(nodes)
        if forward and a >= b:
            continue
        end = None if random.random() < 0.05 else b
        found[(a, end)] += 1
    return found


def changed(random: Random, bag: Bag, nodes: int, *, forward: bool = False) -> Bag:
    kept = Counter({row: n for row, n in bag.items() if random.random() < 0.75})
    return kept + random_rows(random, nodes, 2, forward=forward)
