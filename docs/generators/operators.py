"""The pages of the operators: for each a small plan, the rows it reads, what comes out, its SQL.

What a page shows is run by tests: by the pure evaluator, which fills the page, and by Spark.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal

from docs.generators.blocks import fenced, text_table
from headrace.algebra.scalar import Column, Literal, Value
from headrace.delta.differentiate import Differentiation
from headrace.delta.loop import gained
from headrace.functions import call, cast
from headrace.plan.describe import describe
from headrace.plan.evaluate import Bag, evaluate, net
from headrace.plan.loop import Loop
from headrace.plan.operators import (
    Accumulate,
    Aggregate,
    AggregateCall,
    Empty,
    Filter,
    Frame,
    FrameBound,
    FullJoin,
    Join,
    Merge,
    Negate,
    Net,
    Operator,
    OuterSemiAntiJoin,
    OuterSemiAntiJoinDelta,
    Part,
    Project,
    Recursive,
    Replicate,
    Restrict,
    Scan,
    SortKey,
    Top,
    TopMerge,
    UnionAll,
    Unnest,
    Unseen,
    Values,
    Version,
    Window,
    WindowCall,
)
from headrace.plan.stages import cut_stages
from headrace.render import render
from headrace.render.inputs import input_name
from headrace.render.native import render_native
from headrace.types import BIGINT, INTEGER, TEXT, numeric, result_numeric

# Each relation before the change, and its change. The example of every page is the same: ada's
# second order goes from 5 to 6, ada moves from north to west, an old order of bob's is deleted, and
# eve, whom bob referred, refers dan.
RELATIONS: dict[str, tuple[Bag, Bag]] = {
    "orders": (
        Counter(
            {
                (1, "ada", Decimal("10.00")): 1,
                (2, "ada", Decimal("5.00")): 1,
                (3, "bob", Decimal("7.00")): 1,
            }
        ),
        Counter({(2, "ada", Decimal("5.00")): -1, (2, "ada", Decimal("6.00")): 1}),
    ),
    "old_orders": (
        Counter({(4, "bob", Decimal("1.00")): 1, (5, "eve", Decimal("2.00")): 1}),
        Counter({(4, "bob", Decimal("1.00")): -1}),
    ),
    "customers": (
        Counter({("ada", "north"): 1, ("bob", "south"): 1}),
        Counter({("ada", "north"): -1, ("ada", "west"): 1}),
    ),
    "referrals": (
        Counter({("ada", "bob"): 1, ("bob", "eve"): 1}),
        Counter({("eve", "dan"): 1}),
    ),
}

ID = Column("id", INTEGER)
CUSTOMER = Column("customer", TEXT)
AMOUNT = Column("amount", numeric(12, 2))
NAME = Column("name", TEXT)
REGION = Column("region", TEXT)
KNOWN_NAME = Column("known_name", TEXT)
KNOWN_REGION = Column("known_region", TEXT)
PLACE = Column("place", INTEGER)
DOUBLED = call("*", AMOUNT, Literal(2, INTEGER))

ORDERS = Scan("orders", (("c1", ID), ("c2", CUSTOMER), ("c3", AMOUNT)))
OLD = Scan("old_orders", ORDERS.fields)
CUSTOMERS = Scan("customers", (("c1", NAME), ("c2", REGION)))
OF_CUSTOMER = call("=", NAME, CUSTOMER)
TOUCHED = Column("touched_customer", TEXT)
REVENUE = Aggregate(
    ORDERS,
    (CUSTOMER,),
    (
        AggregateCall(Column("orders", BIGINT), "count"),
        AggregateCall(Column("total", result_numeric(38, 2)), "sum", AMOUNT),
    ),
)
BY_AMOUNT = (SortKey(AMOUNT),)
LARGEST = (SortKey(AMOUNT, descending=True),)
NUMBER = WindowCall(Column("number", BIGINT), "row_number", (), BY_AMOUNT, (SortKey(ID),))
RUNNING = WindowCall(
    Column("running", result_numeric(38, 2)),
    "sum",
    (AMOUNT,),
    BY_AMOUNT,
    frame=Frame("range", FrameBound("unbounded preceding"), FrameBound("current row")),
)
BY, REFERRED = Column("by", TEXT), Column("referred", TEXT)
REFERRALS = Scan("referrals", (("c1", BY), ("c2", REFERRED)))
FIRST, NEXT, ADA = Column("first", TEXT), Column("next", TEXT), Literal("ada", TEXT)
FOUND = Column("found", TEXT)
# All whom ada referred, and those referred by them.
FOLLOWERS = Recursive(
    "recursion_1",
    (Column("follower", TEXT),),
    Project(Filter(REFERRALS, call("=", BY, ADA)), ((FIRST, REFERRED),)),
    Project(
        Join(Scan("recursion_1", (("c1", FOUND),)), REFERRALS, call("=", BY, FOUND)),
        ((NEXT, REFERRED),),
    ),
    once=True,
)
(LOOP_STAGE,) = cut_stages(FOLLOWERS, "followers")
assert LOOP_STAGE.variable is not None
ROUND = gained(Loop((LOOP_STAGE.variable,)), LOOP_STAGE.variable, frozenset({"followers"}))
(STAGE,) = cut_stages(REVENUE, "revenue")
assert STAGE.state is not None
STATE = STAGE.state


@dataclass(frozen=True)
class Example:
    """A plan whose topmost node is the operator.

    `changes` says that the page shows the plan's change, for operators with a delta rule of their
    own; the others appear only in deltas, or have their rule in a stage. `round` is the plan that
    the page shows for an operator that is no one query.
    """

    operator: type[Operator]
    plan: Operator
    changes: bool = False
    round: Operator | None = None

    @property
    def change(self) -> Operator:
        return Differentiation(frozenset(RELATIONS)).change(self.plan)

    @property
    def shown(self) -> Operator:
        """The plan whose Spark SQL the page shows."""
        if self.round is not None:
            return self.round
        return self.change if self.changes else self.plan

    @property
    def sql(self) -> str:
        if isinstance(self.plan, Aggregate):
            return render_native(self.plan, tuple(column.id for column in self.plan.columns))
        return render(self.shown)


def _at(scan: Scan, version: Version) -> Scan:
    return Scan(scan.relation, scan.fields, version)


EXAMPLES: tuple[Example, ...] = (
    Example(Scan, ORDERS, changes=True),
    Example(
        Values,
        Values(
            (NAME, REGION),
            (
                (Literal("ada", TEXT), Literal("north", TEXT)),
                (Literal("eve", TEXT), Literal(None, TEXT)),
            ),
        ),
    ),
    Example(Filter, Filter(ORDERS, call(">", AMOUNT, Literal(5, INTEGER))), changes=True),
    Example(
        Project,
        Project(ORDERS, ((ID, ID), (Column("doubled", DOUBLED.type), DOUBLED))),
        changes=True,
    ),
    Example(
        Join,
        Join(ORDERS, CUSTOMERS, call("=", CUSTOMER, NAME)),
        changes=True,
    ),
    Example(
        OuterSemiAntiJoin,
        OuterSemiAntiJoin(CUSTOMERS, OLD, "left", OF_CUSTOMER),
        changes=True,
    ),
    Example(FullJoin, FullJoin(CUSTOMERS, OLD, OF_CUSTOMER), changes=True),
    Example(
        Unnest,
        Unnest(ORDERS, "generate_series", (Literal(1, INTEGER), ID, Literal(1, INTEGER)), (PLACE,)),
        changes=True,
    ),
    Example(Replicate, Replicate(ORDERS, cast(ID, BIGINT)), changes=True),
    Example(UnionAll, UnionAll((ORDERS, OLD)), changes=True),
    Example(Negate, Negate(ORDERS), changes=True),
    Example(Empty, Empty(ORDERS.columns)),
    Example(Net, Net(UnionAll((_at(ORDERS, "before"), _at(ORDERS, "change"))))),
    Example(
        Restrict,
        Restrict(
            ORDERS,
            Project(_at(OLD, "change"), ((TOUCHED, CUSTOMER),)),
            ((CUSTOMER, TOUCHED),),
        ),
    ),
    Example(Aggregate, REVENUE),
    Example(Accumulate, Accumulate(ORDERS, STATE)),
    Example(
        Merge,
        Merge(Scan("revenue", STAGE.state_fields, "before"), _at(ORDERS, "change"), STATE),
    ),
    Example(
        OuterSemiAntiJoinDelta,
        OuterSemiAntiJoinDelta(
            _at(CUSTOMERS, "change"),
            OuterSemiAntiJoin(_at(CUSTOMERS, "before"), _at(OLD, "change"), "semi", OF_CUSTOMER),
            _at(OLD, "before"),
            OLD,
            "left",
            OF_CUSTOMER,
        ),
    ),
    Example(Window, Window(ORDERS, (CUSTOMER,), (NUMBER, RUNNING))),
    Example(Top, Top(ORDERS, (CUSTOMER,), LARGEST, (SortKey(ID),), 1)),
    Example(
        TopMerge,
        TopMerge(
            _at(ORDERS, "before"),
            _at(ORDERS, "change"),
            (CUSTOMER,),
            LARGEST,
            (SortKey(ID),),
            2,
        ),
    ),
    Example(Recursive, FOLLOWERS, round=ROUND),
    Example(Part, Part(Net(_at(ORDERS, "change")), "removed")),
    Example(
        Unseen,
        Unseen(
            _at(CUSTOMERS, "change"),
            Scan("customers", (("c1", KNOWN_NAME), ("c2", KNOWN_REGION)), "before"),
        ),
    ),
)


def read(scan: Scan) -> Bag:
    """The rows of a relation of the examples, with the columns that the scan reads."""
    physical = [f"c{number}" for number in range(1, 4)]
    if scan.relation == STAGE.relation:
        rows = evaluate(Accumulate(_at(ORDERS, scan.version), STATE), read)
        physical = [name for name, _ in STAGE.state_fields]
    elif scan.relation == LOOP_STAGE.relation:
        rows = evaluate(FOLLOWERS.base, read)
    else:
        before, change = RELATIONS[scan.relation]
        after = net(Counter({row: before[row] + change[row] for row in {*before, *change}}))
        rows = {"before": before, "change": change, "after": after}[scan.version]
    places = [physical.index(name) for name, _ in scan.fields]
    bag: Bag = Counter()
    for row, weight in rows.items():
        bag[tuple(row[place] for place in places)] += weight
    return bag


def inputs(plan: Operator) -> tuple[Scan, ...]:
    """What the plan reads, each input once, in the order of the plan."""
    scans: dict[tuple[str, Version], Scan] = {}

    def visit(node: Operator) -> None:
        if isinstance(node, Scan):
            scans.setdefault((node.relation, node.version), node)
        for child in node.children:
            visit(child)

    visit(plan)
    return tuple(scans.values())


def page_of(operator: type[Operator]) -> str:
    """The page of an operator: UnionAll has union_all.md."""
    words = re.sub(r"(?<!^)(?=[A-Z])", "_", operator.__name__).lower()
    return f"operators/{words}.md"


def operator_blocks() -> dict[str, dict[str, str]]:
    """For every page its generated blocks."""
    return {
        page_of(example.operator): {"example": _example(example), "sql": fenced(example.sql, "sql")}
        for example in EXAMPLES
    }


def _example(example: Example) -> str:
    shown = example.shown
    parts = ["The plan:", fenced(describe(example.plan))]
    if example.changes:
        parts += ["Its change, when all that it reads changes:", fenced(describe(shown))]
    if example.round is not None:
        whole = net(evaluate(example.plan, read))
        parts += ["Its rows:", fenced(bag_text(example.plan.columns, whole))]
        parts += ["A round of its loop, the one after its first:", fenced(describe(shown))]
    for scan in inputs(shown):
        name = input_name(scan.relation, scan.version)
        parts += [f"`{name}` holds:", fenced(bag_text(scan.columns, read(scan)))]
    result = net(evaluate(shown, read))
    return "\n\n".join([*parts, "The result:", fenced(bag_text(shown.columns, result))])


def bag_text(columns: tuple[Column, ...], bag: Bag) -> str:
    """Weighted rows in an order of their own."""
    rows = sorted(bag.items(), key=lambda item: tuple(map(str, item[0])))
    return text_table(
        ("_weight", *(column.id for column in columns)),
        [(f"{weight:+d}", *map(_shown, row)) for row, weight in rows],
    )


def _shown(value: Value) -> str:
    return "NULL" if value is None else str(value)
