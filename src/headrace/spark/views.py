"""Inputs of queries as temporary views of one session, registered only when they change."""

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
THREADS = 4
# Where a query has several tasks, each reads so many rows of those handed over.
WIDE_ROWS = 10_000

Files = tuple[pa.Schema, tuple[str, ...]]
"""Which columns of which files: inputs of any name share the opened list."""


@dataclass(frozen=True)
class Input:
    """A named input of a query: the rows of Parquet files and of an Arrow table together.

    The view has exactly the columns of `schema`; files and rows may have more. With `kept_for`, the
    rows of the files stay in Spark's memory until `release` of that name.
    """

    name: str
    schema: pa.Schema
    files: tuple[str, ...] = ()
    rows: pa.Table | None = field(default=None, compare=False)
    kept_for: str | None = field(default=None, compare=False)

    def same(self, other: Input) -> bool:
        """Return whether the other makes the same view; rows are compared by identity."""
        return self == other and self.rows is other.rows


class Views:
    """The views of one session; used by one thread at a time.

    With `one_partition` every input is coalesced to one partition, so that plans need no exchange.
    """

    def __init__(self, session: SparkSession, *, one_partition: bool) -> None:
        self._session = session
        self._jvm = JvmShortcuts(session)
        self._one_partition = one_partition
        self._registered: OrderedDict[str, Input] = OrderedDict()
        self._scans: OrderedDict[Files, DataFrame] = OrderedDict()
        self._kept: dict[str, dict[Files, DataFrame]] = {}
        self._threads = ThreadPoolExecutor(THREADS, "headrace-inputs")

    def matches(self, inputs: Iterable[Input]) -> int:
        """Return how many of the inputs are registered unchanged, or kept in memory here."""
        return sum(
            self._is_registered(input_) or input_.kept_for in self._kept for input_ in inputs
        )

    def register(self, inputs: Sequence[Input]) -> None:
        """Register every input as a view of its name.

        Passing rows to the JVM takes dozens of small calls, so several inputs go in parallel.
        """
        missing = [input_ for input_ in inputs if not self._is_registered(input_)]
        self._show_all(missing, self._local)
        for input_ in missing:
            self._registered[input_.name] = input_
        for input_ in inputs:
            self._registered.move_to_end(input_.name)

    def register_leaves(self, inputs: Sequence[Input]) -> dict[str, ArrowLeaf] | None:
        """Register every input as a view, for the query that is planned next.

        Return the leaf of each input's rows by name; None if some rows cannot be in a leaf.
        """
        leaves: dict[str, ArrowLeaf] = {}

        def local(input_: Input) -> DataFrame:
            leaf = self._jvm.leaf(_rows(input_), input_.schema)
            if leaf is None:
                return self._local(input_)
            leaves[input_.name] = leaf
            return leaf.frame

        self._show_all(inputs, local)
        for input_ in inputs:
            # No input matches this entry: the leaf's rows may be exchanged before the next use.
            self._registered[input_.name] = replace(input_, rows=input_.schema.empty_table())
        return leaves if len(leaves) == sum(map(has_rows, inputs)) else None

    def exchange(self, leaf: ArrowLeaf, input_: Input) -> bool:
        """Replace the rows of a leaf by those of an input; return False if they do not fit."""
        return self._jvm.exchange(leaf, _rows(input_))

    @property
    def exchanges(self) -> bool:
        """Return whether inputs can be leaves."""
        return self._one_partition and self._jvm.exchanges

    def _show_all(self, inputs: Sequence[Input], local: Callable[[Input], DataFrame]) -> None:
        def show(input_: Input) -> None:
            self._jvm.show(input_.name, input_.schema, self._frame(input_, local))

        for input_ in inputs:
            # If a later step fails, the view must not count as registered.
            self._registered.pop(input_.name, None)
        for input_ in inputs:
            if input_.files:
                show(input_)
        from_memory = [input_ for input_ in inputs if not input_.files]
        if len(from_memory) == 1:
            show(from_memory[0])
        elif from_memory:
            wait(futures := [self._threads.submit(show, each) for each in from_memory])
            for future in futures:
                future.result()

    def release(self, name: str) -> None:
        """Free the memory of inputs with this `kept_for`."""
        for scan in self._kept.pop(name, {}).values():
            scan.unpersist()

    def trim(self) -> None:
        """Drop the least recently used views beyond the limits on number and bytes."""
        while len(self._registered) > MOST_VIEWS or self._bytes() > MOST_BYTES:
            name, _ = self._registered.popitem(last=False)
            self._jvm.drop(name)
        while len(self._scans) > MOST_VIEWS:
            self._scans.popitem(last=False)

    def _is_registered(self, input_: Input) -> bool:
        registered = self._registered.get(input_.name)
        return registered is not None and registered.same(input_)

    def _bytes(self) -> int:
        return sum(each.rows.nbytes for each in self._registered.values() if each.rows is not None)

    def _frame(self, input_: Input, local: Callable[[Input], DataFrame]) -> DataFrame:
        parts = []
        if input_.files:
            parts.append(self._scan(input_))
        if has_rows(input_):
            parts.append(self._in_one(local(input_)))
        return parts[0] if len(parts) == 1 else self._in_one(parts[0].union(parts[1]))

    def _scan(self, input_: Input) -> DataFrame:
        """Return the files' rows as a frame, kept while the list of files stays the same."""
        key = (input_.schema, input_.files)
        if key not in self._scans:
            self._scans[key] = self._in_one(self._opened(input_))
        self._scans.move_to_end(key)
        scan = self._scans[key]
        if input_.kept_for is not None:
            cached_scans = self._kept.setdefault(input_.kept_for, {})
            if key not in cached_scans:
                cached_scans[key] = scan.cache()
        return scan

    def _opened(self, input_: Input) -> DataFrame:
        return self._session.read.schema(struct(input_.schema)).parquet(*input_.files)

    def _local(self, input_: Input) -> DataFrame:
        # Spark makes one partition per chunk.
        table = _rows(input_).combine_chunks()
        return self._jvm.frame(table, input_.schema, None if self._one_partition else WIDE_ROWS)

    def _in_one(self, frame: DataFrame) -> DataFrame:
        return frame.coalesce(1) if self._one_partition else frame


def has_rows(input_: Input) -> bool:
    """Return whether an input has rows, perhaps none, besides its files."""
    return input_.rows is not None or not input_.files


def _rows(input_: Input) -> pa.Table:
    rows = input_.schema.empty_table() if input_.rows is None else input_.rows
    return to_schema(rows, input_.schema)
