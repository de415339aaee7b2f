"""Queries that come back: Spark's physical plan is kept, and only the rows of its leaves exchanged.

A query of one task costs more to parse, analyse, optimise and plan than to run. The same text over
inputs of the same columns has the same plan, so that is kept: rows go into the partition
that every job of it serialises, and the plan runs again.

Whatever Spark itself keeps between two runs of one plan would be stale: shuffles, broadcasts,
subqueries, cached relations. So a plan is kept only if all of its operators, and all of the RDDs
that they run as, are known to keep nothing.
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

# All sessions together keep plans in so much of the JVM's heap, by the length of their texts: a
# plan takes some 64 bytes a character.
PART_OF_HEAP = 4
BYTES_A_CHARACTER = 64
MOST_PLANS = 2_000
# Rows that a leaf may hold on to between two runs.
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
"""A query's text and its inputs but for their rows."""


def key_of(sql: str, inputs: Iterable[Input]) -> Key:
    """What two runs have in common that have the same plan."""
    return sql, tuple((one.name, one.schema, one.files, has_rows(one)) for one in inputs)


def keeps_nothing(operators: str, lineage: str) -> bool:
    """Whether nothing of a plan outlives a run, by its tree of operators and that of its RDDs.

    A line that no operator begins, such as the rest of a constant, counts as an unknown operator.
    """
    named = (_OPERATOR.match(line) for line in operators.splitlines() if line.strip())
    rdds = _RDD.findall(lineage)
    return (
        all(found is not None and found[1] in OPERATORS for found in named)
        and bool(rdds)
        and set(rdds) <= RDDS
        and "CachedPartitions" not in lineage
        # A cached relation that has a name is shown as a scan.
        and "In-memory" not in operators
    )


@dataclass
class Plan:
    """A query that can be run again, and the leaves that hold its rows, by the inputs' names."""

    frame: DataFrame
    leaves: Mapping[str, ArrowLeaf]
    # What each leaf holds; not known means that it has to be exchanged.
    holding: dict[str, pa.Table | None] = field(default_factory=dict)


class Room:
    """How much text the plans of one session may have; sessions divide the heap among them."""

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
        """The rows of a query over these inputs, by its kept plan if there is one."""
        # Out of the others while it runs: one that fails does not come back.
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
        again = None if leaves is None else _again(frame)
        if leaves is not None and again is not None:
            holding = {one.name: one.rows for one in inputs if one.name in leaves}
            return self._run(key, Plan(again, leaves, holding))
        self._refused[key] = None
        while len(self._refused) > MOST_PLANS:
            self._refused.popitem(last=False)
        return frame.toArrow()

    def _run(self, key: Key, plan: Plan) -> pa.Table:
        rows = plan.frame.toArrow()
        for name, held in plan.holding.items():
            if held is not None and held.get_total_buffer_size() > MOST_IDLE_BYTES:
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
        """Have the leaves hold the rows of these inputs; False if one of them cannot."""
        for wanted in inputs:
            leaf = plan.leaves.get(wanted.name)
            if leaf is None or plan.holding[wanted.name] is wanted.rows is not None:
                continue
            plan.holding[wanted.name] = None
            if not self._views.exchange(leaf, wanted):
                return False
            plan.holding[wanted.name] = wanted.rows
        return True


def _again(frame: DataFrame) -> DataFrame | None:
    """A frame that runs another's physical plan and holds on to nothing else; None if it may not.

    The parsed, analysed and optimised forms of a query take much more memory than its RDDs. What
    is wrong with the query itself is said when it runs.
    """
    from pyspark.sql import DataFrame

    session, given = frame.sparkSession, frame._jdf  # noqa: SLF001
    try:
        plan = given.queryExecution().executedPlan()
        rows = plan.execute()
        if not keeps_nothing(plan.toString(), rows.toDebugString()):
            return None
        again = session._jsparkSession.internalCreateDataFrame(rows, given.schema(), False)  # noqa: SLF001
    except refusals() as error:
        logger.debug("a plan is not kept", extra={"error": str(error)})
        return None
    return DataFrame(again, session)
