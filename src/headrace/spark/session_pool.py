"""A pool of sessions: each call has a session to itself while it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import pyarrow as pa

from headrace.spark.prepared import Key, Plans, Room
from headrace.spark.profiles import COMPILED, INTERPRETED, MOST_INTERPRETED, Profile
from headrace.spark.session import Generation, Spark, Worker
from headrace.spark.views import Input, Views

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(eq=False)
class SessionSlot:
    """One session, its views and plans, and the only thread that uses them.

    All belong to one generation of Spark and are useless after it.
    """

    generation: Generation
    profile: Profile
    session: SparkSession
    views: Views
    worker: Worker
    plans: Plans
    interprets: bool = False

    def collect(self, key: Key, inputs: Sequence[Input]) -> pa.Table:
        """Return the result of a query; the plan of a query of one task is kept."""
        if self.profile == "tiny" and not any(each.kept_for for each in inputs):
            self._evaluate(interpreted=_are_few(inputs))
            return self.plans.collect(key, inputs)
        self.prepare(inputs)
        return self.session.sql(key[0]).toArrow()

    def prepare(self, inputs: Sequence[Input]) -> None:
        """Register the inputs as views, and choose the evaluation of expressions by their rows."""
        if inputs and self.profile == "tiny":
            self._evaluate(interpreted=_are_few(inputs))
        self.views.register(inputs)

    def _evaluate(self, *, interpreted: bool) -> None:
        if interpreted is not self.interprets:
            for name, value in (INTERPRETED if interpreted else COMPILED).items():
                self.session.conf.set(name, value)
            self.interprets = interpreted


def _are_few(inputs: Sequence[Input]) -> bool:
    """Return whether the inputs are known to have few rows; those of files are not counted."""
    if any(each.files for each in inputs):
        return False
    rows: int = sum(each.rows.num_rows for each in inputs if each.rows is not None)
    return rows <= MOST_INTERPRETED


class SessionPool:
    """Lends session slots: for each profile as many as calls ever ran in parallel.

    Two calls never share a session: they may use the same view name for different rows, and Spark
    Connect resolves a view only when the query runs. Only slots of the running application are
    lent; those of an earlier generation are discarded when they are returned.
    """

    def __init__(self, spark: Spark) -> None:
        self._spark = spark
        self._free: list[SessionSlot] = []
        self._lock = Lock()
        self._rooms: WeakKeyDictionary[Generation, Room] = WeakKeyDictionary()

    def take(
        self, profile: Profile, inputs: Sequence[Input], key: Key | None = None
    ) -> SessionSlot:
        """Return a free slot or a new one.

        Preferred is a slot that has the query's plan, or most of the inputs registered.
        """
        self.discard_lost()
        with self._lock:
            fitting = [slot for slot in self._free if slot.profile == profile]
            if fitting:
                best = max(
                    fitting, key=lambda slot: (key in slot.plans, slot.views.matches(inputs))
                )
                self._free.remove(best)
                return best
        generation, session = self._spark.session_of_generation(profile)
        views = Views(session, one_partition=profile == "tiny")
        worker = Worker(f"headrace-{profile}")
        with self._lock:
            room = self._rooms.setdefault(generation, Room())
            room.sessions += profile == "tiny"
        return SessionSlot(generation, profile, session, views, worker, Plans(session, views, room))

    def give(self, slot: SessionSlot) -> None:
        with self._lock:
            self._free.append(slot)
        self.discard_lost()

    def discard_lost(self) -> None:
        """Discard the free slots of lost applications."""
        current = self._spark.generation
        with self._lock:
            lost = [slot for slot in self._free if slot.generation is not current]
            self._free = [slot for slot in self._free if slot.generation is current]
        for slot in lost:
            slot.worker.stop()

    def release(self, name: str) -> None:
        """Free what the free slots keep in memory under this name."""
        self.discard_lost()
        with self._lock:
            free = tuple(self._free)
        for slot in free:
            slot.worker.do(partial(slot.views.release, name))

    def close(self) -> None:
        """Discard all free slots."""
        with self._lock:
            self._rooms.clear()
            while self._free:
                self._free.pop().worker.stop()
