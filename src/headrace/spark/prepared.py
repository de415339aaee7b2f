"""Prepared queries: Spark's physical plan is kept between runs, and only its input rows change.

A query of one task costs more to parse, analyse, optimise and plan than to run. The same text over
inputs of the same columns has the same plan, so the plan is kept: new rows are put into the
partition that every job of the plan serialises, and the plan runs again.

State that Spark itself keeps between two runs of a plan would be stale: shuffles, broadcasts,
subqueries, cached relations. So a plan is kept only if all its operators, and all RDDs that they
run as, are known to keep no state.
"""

from __future__ import annotations

import logging
import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from headrace.spark.jvm_shortcuts import ArrowLeaf, refusals
from headrace.spark.views import Input, Views, has_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger(__name__)

# The plans of all sessions take at most this fraction (1/n) of the JVM's heap, estimated by the
# length of the query texts: about 64 bytes per character.
PART_OF_HEAP = 4
BYTES_A_CHARACTER = 64
MOST_PLANS = 2_000
# The bytes of rows that a leaf may keep between two runs.
MOST_IDLE_BYTES = 64 << 10

OPERATORS = frozenset(
    (
        *("Scan", "FileScan", "FileSourceScan", "LocalTableScan", "OneRowRelation"),
        *("Filter", "Project", "Union", "Coalesce", "Sort", "Expand", "Generate", "Range"),
        *("SortMergeJoin", "ShuffledHashJoin", "CartesianProduct"),
        *("HashAggregate", "ObjectHashAggregate", "SortAggregate"),
        *("Window", "WindowGroupLimit", "TakeOrderedAndProject"),
        *("LocalLimit", "GlobalLimit", "CollectLimit"),
        *("WholeStageCodegen", "InputAdapter", "ColumnarToRow"),
    )
)
RDDS = frozenset(
    (
        *("ParallelCollectionRDD", "FileScanRDD", "DataSourceRDD", "EmptyRDDWithPartitions"),
        *("MapPartitionsRDD", "MapPartitionsWithEvaluatorRDD", "CoalescedRDD"),
        *("ZippedPartitionsRDD2", "ZippedPartitionsWithEvaluatorRDD"),
        *("UnionRDD", "PartitionerAwareUnionRDD", "SQLPartitioningAwareUnionRDD"),
        *("CartesianRDD", "UnsafeCartesianRDD"),
    )
)
_OPERATOR = re.compile(r"[ :+|-]*(?:\*\(\d+\) )?([A-Za-z]*)")
_RDD = re.compile(r"\b(\w+)\[\d+\] at ")

Key = tuple[str, tuple[tuple[str, pa.Schema, tuple[str, ...], bool], ...]]
"""A query's text and its inputs without their rows."""


def key_of(sql: str, inputs: Iterable[Input]) -> Key:
    """Return the key of a query: runs with the same key have the same plan."""
    return sql, tuple((each.name, each.schema, each.files, has_rows(each)) for each in inputs)


def keeps_nothing(operators: str, lineage: str) -> bool:
    """Return whether a plan keeps no state between runs, by its operators and its RDD lineage.

    A line that does not begin with an operator, such as the rest of a constant, counts as unknown.
    """
    matches = (_OPERATOR.match(line) for line in operators.splitlines() if line.strip())
    rdds = _RDD.findall(lineage)
    return (
        all(match is not None and match[1] in OPERATORS for match in matches)
        and bool(rdds)
        and set(rdds) <= RDDS
        and "CachedPartitions" not in lineage
        # A cached relation with a name is printed as a scan.
        and "In-memory" not in operators
    )


@dataclass
class Plan:
    """A query that can run again, and the leaves that hold its rows, by the inputs' names."""

    frame: DataFrame
    leaves: Mapping[str, ArrowLeaf]
    # The rows that each leaf holds; None: unknown, they have to be exchanged.
    holding: dict[str, pa.Table | None] = field(default_factory=dict)


class Room:
    """The length of query texts allowed for each session; sessions share the heap equally."""

    def __init__(self) -> None:
        self.sessions = 0
        self._all: int | None = None

    def of(self, session: SparkSession) -> int:
        if self._all is None:
            heap = session._jvm.java.lang.Runtime.getRuntime().maxMemory()  # type: ignore[union-attr]  # noqa: SLF001
            self._all = heap // PART_OF_HEAP // BYTES_A_CHARACTER
        return self._all // max(1, self.sessions)


class Plans:
    """The kept plans of one session; used by one thread at a time."""

    def __init__(self, session: SparkSession, views: Views, room: Room) -> None:
        self._session = session
        self._room = room
        self._views = views
        self._kept: OrderedDict[Key, Plan] = OrderedDict()
        self._refused: OrderedDict[Key, None] = OrderedDict()
        self._text = 0

    def __contains__(self, key: Key | None) -> bool:
        return key in self._kept

    def collect(self, key: Key, inputs: Sequence[Input]) -> pa.Table:
        """Return the result of a query over these inputs, by its kept plan if there is one."""
        # The plan is removed while it runs, so a failed plan is not kept.
        plan = self._kept.pop(key, None)
        if plan is not None:
            self._text -= len(key[0])
            if self._exchange(plan, inputs):
                return self._run(key, plan)
        if key in self._refused or not self._views.exchanges:
            self._views.register(inputs)
            return self._session.sql(key[0]).toArrow()
        leaves = self._views.register_leaves(inputs)
        frame = self._session.sql(key[0])
        reusable = None if leaves is None else _plan_only(frame)
        if leaves is not None and reusable is not None:
            holding = {each.name: each.rows for each in inputs if each.name in leaves}
            return self._run(key, Plan(reusable, leaves, holding))
        self._refused[key] = None
        while len(self._refused) > MOST_PLANS:
            self._refused.popitem(last=False)
        return frame.toArrow()

    def _run(self, key: Key, plan: Plan) -> pa.Table:
        rows = plan.frame.toArrow()
        for name, leaf_rows in plan.holding.items():
            if leaf_rows is not None and leaf_rows.get_total_buffer_size() > MOST_IDLE_BYTES:
                leaf = plan.leaves[name]
                self._views.exchange(leaf, Input(name, leaf.schema))
                plan.holding[name] = None
        self._kept[key] = plan
        self._text += len(key[0])
        most = self._room.of(self._session)
        while len(self._kept) > MOST_PLANS or self._text > most:
            (sql, _), _ = self._kept.popitem(last=False)
            self._text -= len(sql)
        return rows

    def _exchange(self, plan: Plan, inputs: Sequence[Input]) -> bool:
        """Exchange the rows of the leaves; return False if those of an input do not fit."""
        for each in inputs:
            leaf = plan.leaves.get(each.name)
            if leaf is None or plan.holding[each.name] is each.rows is not None:
                continue
            plan.holding[each.name] = None
            if not self._views.exchange(leaf, each):
                return False
            plan.holding[each.name] = each.rows
        return True


def _plan_only(frame: DataFrame) -> DataFrame | None:
    """Return a frame that has only the physical plan of another; None if the plan must not be kept.

    The parsed, analysed and optimised forms of a query take much more memory than its RDDs. Errors
    of the query itself are raised when it runs.
    """
    from pyspark.sql import DataFrame

    session, java_frame = frame.sparkSession, frame._jdf  # noqa: SLF001
    try:
        plan = java_frame.queryExecution().executedPlan()
        rows = plan.execute()
        if not keeps_nothing(plan.toString(), rows.toDebugString()):
            return None
        reusable = session._jsparkSession.internalCreateDataFrame(rows, java_frame.schema(), False)  # noqa: SLF001
    except refusals() as error:
        logger.debug("could not keep a plan", extra={"error": str(error)})
        return None
    return DataFrame(reusable, session)
