"""The inputs of a query as temporary views of one session, registered only when they change."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from headrace.spark.jvm_shortcuts import ArrowLeaf, JvmShortcuts
from headrace.spark.schema import struct, to_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST_VIEWS = 256
MOST_BYTES = 64 << 20
HANDS = 4
# Where a query has several tasks, each reads so many rows of those handed over.
WIDE_ROWS = 10_000

Files = tuple[pa.Schema, tuple[str, ...]]
"""Which columns of which files: inputs of any name share the opened list."""


@dataclass(frozen=True)
class Input:
    """A named input of a query: the rows of Parquet files and of an Arrow table together.

    The view has exactly the columns of `schema`; files and rows may have more. What is read again
    and again names a piece of work in `kept_for`: the files' rows stay in Spark's memory until
    `release` of that name.
    """

    name: str
    schema: pa.Schema
    files: tuple[str, ...] = ()
    rows: pa.Table | None = field(default=None, compare=False)
    kept_for: str | None = field(default=None, compare=False)

    def same(self, other: Input) -> bool:
        """True if the other makes the same view; rows are compared by identity."""
        return self == other and self.rows is other.rows


class Views:
    """The views of one session; used by one thread at a time.

    With `one_partition` every input is brought into a single partition, which lets a plan do
    without exchanges.
    """

    def __init__(self, session: SparkSession, *, one_partition: bool) -> None:
        self._session = session
        self._bridge = JvmShortcuts(session)
        self._one_partition = one_partition
        self._registered: OrderedDict[str, Input] = OrderedDict()
        self._scans: OrderedDict[Files, DataFrame] = OrderedDict()
        self._kept: dict[str, dict[Files, DataFrame]] = {}
        self._hands = ThreadPoolExecutor(HANDS, "headrace-inputs")

    def matches(self, inputs: Iterable[Input]) -> int:
        """How many of the inputs are registered as they are, or kept in memory here."""
        return sum(
            self._is_registered(wanted) or wanted.kept_for in self._kept for wanted in inputs
        )

    def register(self, inputs: Sequence[Input]) -> None:
        """Make every input readable under its name.

        Handing rows to the JVM takes dozens of small calls, so several inputs go side by side.
        """
        missing = [wanted for wanted in inputs if not self._is_registered(wanted)]
        self._show_all(missing, self._local)
        for wanted in missing:
            self._registered[wanted.name] = wanted
        for wanted in inputs:
            self._registered.move_to_end(wanted.name)

    def register_leaves(self, inputs: Sequence[Input]) -> dict[str, ArrowLeaf] | None:
        """Make every input readable under its name, for the query that is planned next.

        The rows of each are in a leaf of its own, given by name. None if some cannot be in one.
        """
        leaves: dict[str, ArrowLeaf] = {}

        def local(wanted: Input) -> DataFrame:
            leaf = self._bridge.leaf(_rows(wanted), wanted.schema)
            if leaf is None:
                return self._local(wanted)
            leaves[wanted.name] = leaf
            return leaf.frame

        self._show_all(inputs, local)
        for wanted in inputs:
            # No input is the same as this one, whose rows may be others when they are read again.
            self._registered[wanted.name] = replace(wanted, rows=wanted.schema.empty_table())
        return leaves if len(leaves) == sum(map(has_rows, inputs)) else None

    def exchange(self, leaf: ArrowLeaf, wanted: Input) -> bool:
        """Have a leaf give the rows of an input from now on; False if it cannot hold them."""
        return self._bridge.exchange(leaf, _rows(wanted))

    @property
    def exchanges(self) -> bool:
        """Whether inputs can be leaves."""
        return self._one_partition and self._bridge.exchanges

    def _show_all(self, inputs: Sequence[Input], local: Callable[[Input], DataFrame]) -> None:
        def show(wanted: Input) -> None:
            self._bridge.show(wanted.name, wanted.schema, self._frame(wanted, local))

        for wanted in inputs:
            # Whatever fails from here on, nobody takes the view for what it was before.
            self._registered.pop(wanted.name, None)
        for wanted in inputs:
            if wanted.files:
                show(wanted)
        from_memory = [wanted for wanted in inputs if not wanted.files]
        if len(from_memory) == 1:
            show(from_memory[0])
        elif from_memory:
            wait(showing := [self._hands.submit(show, one) for one in from_memory])
            for shown in showing:
                shown.result()

    def release(self, name: str) -> None:
        """Let go of what is kept in memory for a piece of work."""
        for scan in self._kept.pop(name, {}).values():
            scan.unpersist()

    def trim(self) -> None:
        """Drop the views used longest ago, down to the bounds on number and bytes."""
        while len(self._registered) > MOST_VIEWS or self._bytes() > MOST_BYTES:
            name, _ = self._registered.popitem(last=False)
            self._bridge.drop(name)
        while len(self._scans) > MOST_VIEWS:
            self._scans.popitem(last=False)

    def _is_registered(self, wanted: Input) -> bool:
        found = self._registered.get(wanted.name)
        return found is not None and found.same(wanted)

    def _bytes(self) -> int:
        return sum(seen.rows.nbytes for seen in self._registered.values() if seen.rows is not None)

    def _frame(self, wanted: Input, local: Callable[[Input], DataFrame]) -> DataFrame:
        parts = []
        if wanted.files:
            parts.append(self._scan(wanted))
        if has_rows(wanted):
            parts.append(self._in_one(local(wanted)))
        return parts[0] if len(parts) == 1 else self._in_one(parts[0].union(parts[1]))

    def _scan(self, wanted: Input) -> DataFrame:
        """The files' rows. Opening the list costs, so it outlives a change of the Arrow rows."""
        key = (wanted.schema, wanted.files)
        if key not in self._scans:
            self._scans[key] = self._in_one(self._opened(wanted))
        self._scans.move_to_end(key)
        scan = self._scans[key]
        if wanted.kept_for is not None:
            kept = self._kept.setdefault(wanted.kept_for, {})
            if key not in kept:
                kept[key] = scan.cache()
        return scan

    def _opened(self, wanted: Input) -> DataFrame:
        return self._session.read.schema(struct(wanted.schema)).parquet(*wanted.files)

    def _local(self, wanted: Input) -> DataFrame:
        # One chunk: Spark makes a partition of each.
        table = _rows(wanted).combine_chunks()
        return self._bridge.frame(table, wanted.schema, None if self._one_partition else WIDE_ROWS)

    def _in_one(self, frame: DataFrame) -> DataFrame:
        return frame.coalesce(1) if self._one_partition else frame


def has_rows(wanted: Input) -> bool:
    """Whether an input is made of rows, which may be none, beside its files."""
    return wanted.rows is not None or not wanted.files


def _rows(wanted: Input) -> pa.Table:
    rows = wanted.schema.empty_table() if wanted.rows is None else wanted.rows
    return to_schema(rows, wanted.schema)
