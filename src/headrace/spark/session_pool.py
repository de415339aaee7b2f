"""Sessions for calls that run at the same time: each has one to itself while it runs."""

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
    """One session, its views and plans, and the one thread that uses them.

    All of them are of one generation of Spark, and of no use after it.
    """

    generation: Generation
    profile: Profile
    session: SparkSession
    views: Views
    worker: Worker
    plans: Plans
    interprets: bool = False

    def collect(self, key: Key, inputs: Sequence[Input]) -> pa.Table:
        """The rows of a query; the plan of one for a single task is kept for the next time."""
        if self.profile == "tiny" and not any(each.kept_for for each in inputs):
            self._evaluate(interpreted=_are_few(inputs))
            return self.plans.collect(key, inputs)
        self.prepare(inputs)
        return self.session.sql(key[0]).toArrow()

    def prepare(self, inputs: Sequence[Input]) -> None:
        """Have the inputs as views, and expressions evaluated as it suits their number of rows."""
        if inputs and self.profile == "tiny":
            self._evaluate(interpreted=_are_few(inputs))
        self.views.register(inputs)

    def _evaluate(self, *, interpreted: bool) -> None:
        if interpreted is not self.interprets:
            for name, value in (INTERPRETED if interpreted else COMPILED).items():
                self.session.conf.set(name, value)
            self.interprets = interpreted


def _are_few(inputs: Sequence[Input]) -> bool:
    """Whether the rows of all inputs are known to be few; how many a file has is not known here."""
    if any(each.files for each in inputs):
        return False
    rows: int = sum(each.rows.num_rows for each in inputs if each.rows is not None)
    return rows <= MOST_INTERPRETED


class SessionPool:
    """Hands out lanes; there are as many of a profile as calls of it ever ran at once.

    Two calls never share a session: they may name different rows by the same view, and Spark
    Connect reads a view only when the query runs. Only lanes of the application that runs now are
    handed out; those of an earlier generation are discarded, whoever gives them back.
    """

    def __init__(self, spark: Spark) -> None:
        self._spark = spark
        self._free: list[SessionSlot] = []
        self._lock = Lock()
        self._rooms: WeakKeyDictionary[Generation, Room] = WeakKeyDictionary()

    def take(
        self, profile: Profile, inputs: Sequence[Input], key: Key | None = None
    ) -> SessionSlot:
        """A free lane or a new one.

        Of several it is one that has the query's plan, or most of the inputs registered.
        """
        self.discard_lost()
        with self._lock:
            fitting = [lane for lane in self._free if lane.profile == profile]
            if fitting:
                best = max(
                    fitting, key=lambda lane: (key in lane.plans, lane.views.matches(inputs))
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

    def give(self, lane: SessionSlot) -> None:
        with self._lock:
            self._free.append(lane)
        self.discard_lost()

    def discard_lost(self) -> None:
        """Release the free lanes of applications that do not run any more."""
        current = self._spark.generation
        with self._lock:
            lost = [lane for lane in self._free if lane.generation is not current]
            self._free = [lane for lane in self._free if lane.generation is current]
        for lane in lost:
            lane.worker.stop()

    def release(self, name: str) -> None:
        """Let go of what free lanes keep in memory for a piece of work."""
        self.discard_lost()
        with self._lock:
            free = tuple(self._free)
        for lane in free:
            lane.worker.do(partial(lane.views.release, name))

    def close(self) -> None:
        """Let go of the sessions that nobody uses."""
        with self._lock:
            self._rooms.clear()
            while self._free:
                self._free.pop().worker.stop()
