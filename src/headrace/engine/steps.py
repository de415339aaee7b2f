"""Steps: every durable act of the system, as data that is performed, explained and watched.

An act belongs to exactly one step, and the process may die before, in or after any step: the work
done by then is either pinned by the catalog or has no effect. Tests kill the process around every
kind of step in `STEPS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from headrace.delta.reduction import Reduction
from headrace.plan.loop import Loop
from headrace.plan.operators import Operator
from headrace.plan.stages import Stage
from headrace.render import PlanInput

Mode = Literal["FULL", "DIFFERENTIAL", "SKIPPED"]


@dataclass(frozen=True)
class Step:
    """An act that is completed, or recovered by the next writer."""


@dataclass(frozen=True)
class RollBack(Step):
    """Recovery: a log is rolled back to its pin."""

    relation: str


@dataclass(frozen=True)
class PinRecovered(Step):
    """The catalog records the pins of logs after recovery, and the tables that lack a log."""


@dataclass(frozen=True)
class RecordLogs(Step):
    """Relations enter the catalog before they have logs; they belong to nobody yet."""

    relations: tuple[str, ...]


@dataclass(frozen=True)
class CreateLog(Step):
    """An empty log for a new relation; it counts once somebody owns it."""

    relation: str


@dataclass(frozen=True)
class NameSlot(Step):
    """The catalog learns the name of a replication slot that will be made."""

    slot: str


@dataclass(frozen=True)
class PublishSource(Step):
    """A source enters the publication of its database."""

    source: str


@dataclass(frozen=True)
class MakeSlot(Step):
    """A replication slot is made under the name that is recorded."""

    slot: str


@dataclass(frozen=True)
class RecordModes(Step):
    """The catalog learns how sources are captured from now on."""

    sources: tuple[str, ...]


@dataclass(frozen=True)
class StopFollowing(Step):
    """Sources leave the publication; with the last one the slot goes, too."""

    sources: tuple[str, ...]


@dataclass(frozen=True)
class MoveSlot(Step):
    """The catalog records up to where a slot releases WAL without changes of captured tables."""

    slot: str


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
    """The changes in a source's buffer are appended to its log."""

    source: str
    epoch: int


@dataclass(frozen=True)
class CopySource(Step):
    """A source's table is appended to its log, as the difference to the state in the log."""

    source: str
    epoch: int


@dataclass(frozen=True)
class Announce(Step):
    """The source database learns the epoch that is about to be pinned."""

    epoch: int


@dataclass(frozen=True)
class PinCut(Step):
    """One catalog transaction: cut, epoch and the sources' pins. Now the change is durable."""

    epoch: int


@dataclass(frozen=True)
class Acknowledge(Step):
    """The source database deletes the changes that are durable here, and records their epoch."""

    epoch: int


@dataclass(frozen=True)
class ComputeStage(Step):
    """One Spark query: the weighted rows that a stage appends to its relation at the epoch.

    `reduction` says which rows of the stage's states a change can reach, where that is known. Where
    the query can leave stale groups, `stale` is the query that recomputes these, and `touched` the
    query that recomputes every touched group, which is run instead of `stale` when there is much
    to recompute. A step that `grows` could leave stale groups, but its change removes no row.
    """

    stage: Stage
    mode: Mode
    reason: str
    plan: Operator
    inputs: tuple[PlanInput, ...]
    sql: str
    reduction: Reduction | None = None
    stale: ComputeStage | None = None
    touched: ComputeStage | None = None
    grows: bool = False


@dataclass(frozen=True)
class ComputeLoop(Step):
    """The rounds of a loop, or a recomputed recursion: the rows that stages append at the epoch.

    In mode FULL these are computed from the states after, else from the changes of `changed`.
    """

    stages: tuple[Stage, ...]
    mode: Mode
    reason: str
    changed: frozenset[str]

    @property
    def loop(self) -> Loop | None:
        """The loop; None for a recursion that no loop can follow."""
        variables = tuple(s.variable for s in self.stages if s.variable is not None)
        return Loop(variables, self.stages[0].levels) if variables else None


@dataclass(frozen=True)
class Publish(Step):
    """One transaction in the home database: pins, frontiers, served tables and history."""

    tables: tuple[str, ...]


@dataclass(frozen=True)
class Compact(Step):
    """Old epochs of logs are compacted, and the shorter logs pinned."""

    relations: tuple[str, ...]


@dataclass(frozen=True)
class RecordFailure(Step):
    """A refresh that failed is recorded in the history."""

    table: str


@dataclass(frozen=True)
class AlterTable(Step):
    """One transaction in the home database: options, status or name of a stream table."""

    table: str


@dataclass(frozen=True)
class BuildIndex(Step):
    """Another index of a served table is built, beside the one that it has."""

    table: str


@dataclass(frozen=True)
class DropIndex(Step):
    """An index of a served table that another index has replaced is dropped."""

    table: str


@dataclass(frozen=True)
class DropTables(Step):
    """One transaction in the home database: served tables and records of stream tables go."""

    tables: tuple[str, ...]


@dataclass(frozen=True)
class DropLog(Step):
    """The log of a relation that belongs to nobody any more is removed."""

    relation: str


@dataclass(frozen=True)
class ForgetLogs(Step):
    """Relations whose logs are removed leave the catalog."""

    relations: tuple[str, ...]


@dataclass(frozen=True)
class TearDownCapture(Step):
    """A source's triggers and buffer are taken away."""

    source: str


@dataclass(frozen=True)
class ForgetSource(Step):
    """A source that is no longer captured leaves the catalog."""

    source: str


@dataclass(frozen=True)
class RemoveCapture(Step):
    """All triggers and buffers, and the schema they are in, are taken away."""


@dataclass(frozen=True)
class RemoveCatalog(Step):
    """One transaction in the home database: served tables and the catalog go."""


STEPS: tuple[type[Step], ...] = (
    RollBack,
    PinRecovered,
    RecordLogs,
    CreateLog,
    NameSlot,
    PublishSource,
    MakeSlot,
    RecordModes,
    StopFollowing,
    MoveSlot,
    RecordSources,
    SetUpCapture,
    TakeCut,
    Postpone,
    AppendChange,
    CopySource,
    Announce,
    PinCut,
    Acknowledge,
    ComputeStage,
    ComputeLoop,
    Publish,
    Compact,
    RecordFailure,
    BuildIndex,
    AlterTable,
    DropIndex,
    DropTables,
    DropLog,
    ForgetLogs,
    TearDownCapture,
    ForgetSource,
    RemoveCapture,
    RemoveCatalog,
)
