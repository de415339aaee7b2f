"""Steps: every durable act of the system, as data that is performed, explained and watched.

An act belongs to exactly one step, and the process may die before, in or after any of them: what
was done by then is either pinned by the catalog or counts for nothing. Tests kill it around every
kind in `STEPS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from headrace.plan.operators import Operator
from headrace.plan.stages import Stage
from headrace.render import PlanInput

Mode = Literal["FULL", "DIFFERENTIAL", "SKIPPED"]


@dataclass(frozen=True)
class Step:
    """Something that is done whole, or made good by whoever writes next."""


@dataclass(frozen=True)
class RollBack(Step):
    """Recovery: a log is brought back to its pin."""

    relation: str


@dataclass(frozen=True)
class PinRecovered(Step):
    """The catalog learns where the logs are after recovery, and what stands still without one."""


@dataclass(frozen=True)
class CreateLog(Step):
    """An empty log for a new relation; it counts once the catalog names it."""

    relation: str


@dataclass(frozen=True)
class RecordSources(Step):
    """New sources enter the catalog; nothing is captured yet."""

    sources: tuple[str, ...]


@dataclass(frozen=True)
class SetUpCapture(Step):
    """Triggers and a buffer that fit the table as it is, in the source database."""

    source: str


@dataclass(frozen=True)
class TakeCut(Step):
    """Ingest: bring the sources of a database to a new epoch, if anything in them changed."""

    sources: tuple[str, ...]


@dataclass(frozen=True)
class Postpone(Step):
    """Sources that a writer keeps busy are left out of a cut; only their readers wait."""

    sources: tuple[str, ...]


@dataclass(frozen=True)
class AppendChange(Step):
    """What a source's buffer holds is appended to its log."""

    source: str
    epoch: int


@dataclass(frozen=True)
class CopySource(Step):
    """A source's table is appended to its log, as the difference to what the log holds."""

    source: str
    epoch: int


@dataclass(frozen=True)
class PinCut(Step):
    """One catalog transaction: cut, epoch and the sources' pins. Now the change is durable."""

    epoch: int


@dataclass(frozen=True)
class Acknowledge(Step):
    """The source database forgets what is durable here, and remembers up to which epoch."""

    epoch: int


@dataclass(frozen=True)
class ComputeStage(Step):
    """One Spark query: the weighted rows that a stage appends to its relation at the epoch."""

    stage: Stage
    mode: Mode
    reason: str
    plan: Operator
    inputs: tuple[PlanInput, ...]
    sql: str


@dataclass(frozen=True)
class Publish(Step):
    """One transaction in the home database: pins, frontiers, served tables and history."""

    tables: tuple[str, ...]


@dataclass(frozen=True)
class Compact(Step):
    """Old epochs of logs are summed up, and the shorter logs pinned."""

    relations: tuple[str, ...]


@dataclass(frozen=True)
class RecordFailure(Step):
    """A refresh that failed is kept in the history."""

    table: str


@dataclass(frozen=True)
class DropTables(Step):
    """One transaction in the home database: served tables and records of stream tables go."""

    tables: tuple[str, ...]


@dataclass(frozen=True)
class DropLog(Step):
    """The log of a relation that no record names any more is removed."""

    relation: str


@dataclass(frozen=True)
class TearDownCapture(Step):
    """A source's triggers and buffer are taken away."""

    source: str


@dataclass(frozen=True)
class ForgetSource(Step):
    """A source that is no longer captured leaves the catalog."""

    source: str


STEPS: tuple[type[Step], ...] = (
    RollBack,
    PinRecovered,
    CreateLog,
    RecordSources,
    SetUpCapture,
    TakeCut,
    Postpone,
    AppendChange,
    CopySource,
    PinCut,
    Acknowledge,
    ComputeStage,
    Publish,
    Compact,
    RecordFailure,
    DropTables,
    DropLog,
    TearDownCapture,
    ForgetSource,
)
