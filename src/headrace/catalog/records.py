"""The records of the catalog, frozen: one class for each table of schema `headrace`.

Records are shared between states and threads: nothing inside them is changed, mappings included.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from headrace.capture.wal.following import Followed, Following
from headrace.source.table import SourceColumn
from headrace.store.log import Pin
from headrace.types import Collation, Type


class Status(StrEnum):
    """The status of a source or a stream table; all but ACTIVE come with a reason."""

    INITIALIZING = "INITIALIZING"
    ACTIVE = "ACTIVE"
    SUSPENDED = "SUSPENDED"
    ERROR = "ERROR"


class CaptureMode(StrEnum):
    """The capture mode of a source; TRANSITIONING is on the way from triggers to the WAL."""

    TRIGGER = "TRIGGER"
    TRANSITIONING = "TRANSITIONING"
    WAL = "WAL"


class RefreshMode(StrEnum):
    AUTO = "AUTO"
    DIFFERENTIAL = "DIFFERENTIAL"
    FULL = "FULL"


@dataclass(frozen=True)
class DatabaseRecord:
    """A source database and its latest cut: the clock that an epoch names.

    `snapshot` is the cut's pg_snapshot text, None before the first cut. System identifier and
    timeline are compared at every cut: no cut is taken of another server, or of a rewound one.
    An attached database has an `address` (and a `setup_address` where another role sets capture
    up): a connection string without a password, or a reference to one. `oid` is that of the
    database in its server. Where refreshes wait for workers, a database is entitled to `quota` of
    them, or to its `share` of those that the quotas of others leave, and a higher `priority` comes
    first. `following` is set while changes are read from the WAL. While a daemon fails to take in
    its changes, `failing_since` says since when, and `failure` why.
    """

    id: int
    alias: str
    system_identifier: str
    timeline: int
    epoch: int = 0
    snapshot: str | None = None
    cut_at: datetime | None = None
    address: str | None = None
    setup_address: str | None = None
    oid: int | None = None
    share: int = 1
    quota: int | None = None
    priority: int = 0
    following: Following | None = None
    failing_since: datetime | None = None
    failure: str | None = None


@dataclass(frozen=True)
class CutRecord:
    """The cut that `epoch` names for one database; a row of `epochs`."""

    epoch: int
    database: int
    snapshot: str
    cut_at: datetime


@dataclass(frozen=True)
class Relation:
    """A log in the store and the pin beyond which nothing in it counts.

    `columns` are the physical columns (name, type) in order. `visible` names those that a reader
    sees; the others are operator state. Where `condition` names a boolean column, only rows for
    which it is true are seen at all. `shown_epoch` is the epoch of the latest change that a reader
    sees; None says that it is the pin's.
    """

    id: str
    columns: tuple[tuple[str, Type], ...]
    visible: tuple[str, ...]
    pin: Pin
    condition: str | None = None
    shown_epoch: int | None = None

    @property
    def changed_at(self) -> int:
        """The epoch of the latest change that a reader sees."""
        return self.pin.epoch if self.shown_epoch is None else self.shown_epoch


@dataclass(frozen=True)
class Source:
    """A captured table: `relation` is its log, `storage` and `columns` as of the last cut.

    `followed` is set unless its changes come from triggers; `mode_reason` says why they do not come
    from the WAL although that is requested. `shrunk_at` is the first epoch in which it lost rows
    although it was declared append-only.
    """

    relation: str
    database: int
    oid: int
    schema: str
    name: str
    columns: tuple[SourceColumn, ...]
    keys: tuple[tuple[int, ...], ...]
    storage: str
    row_triggers: bool = False
    status: Status = Status.INITIALIZING
    reason: str | None = None
    mode: CaptureMode = CaptureMode.TRIGGER
    mode_reason: str | None = None
    followed: Followed | None = None
    shrunk_at: int | None = None


@dataclass(frozen=True)
class OutputColumn:
    """A column of a stream table: its name, its type here, and the type PostgreSQL serves it as."""

    name: str
    type: Type
    served: str


@dataclass(frozen=True)
class ViewRecord:
    """A user's view that a query reads: its text and columns as they were when it was bound."""

    schema: str
    name: str
    text: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class InputNames:
    """The names of an input and of its columns when a query was bound to it."""

    schema: str
    name: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class StreamTable:
    """A named query whose result is maintained.

    `inputs` are relation ids; `frontier` gives for each the epoch taken in, 0 for one that was
    rebuilt since: then the table has to be rebuilt, too. `names` gives the names by which the query
    and its `views` refer to each input, even if the input was renamed or altered since.
    `epoch` is the published one (0 before the first), `as_of` the time of the cut behind it.
    `key` names the output columns that are unique together, empty if the result is a bag without
    a key. `held` says that it was suspended by hand, so that only `resume` ends the suspension, and
    `awaits_rebuild` that the next refresh rebuilds it, because a column has a wider type, or fills
    it, because it was created without rows. A table created without rows has no sources in
    `inputs` until then: the tables that its query reads are looked up when it is filled.
    `edges` gives for each relation that it reads the operators that make it non-monotone in that,
    none if it is monotone; it is empty for a table that was made before edges were kept.
    `failures` counts refreshes that failed in a row; `own_scans` those scans of the served table
    that were our own. `default_collation` is the home database's, as it was
    when the query was bound. `creator` is the role that gave the query, None of an earlier version.
    """

    relation: str
    schema: str
    name: str
    query: str
    columns: tuple[OutputColumn, ...]
    inputs: tuple[str, ...]
    key: tuple[str, ...] = ()
    refresh_mode: RefreshMode = RefreshMode.AUTO
    schedule: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    search_path: tuple[str, ...] = ("public",)
    status: Status = Status.INITIALIZING
    reason: str | None = None
    frontier: Mapping[str, int] = field(default_factory=dict)
    epoch: int = 0
    as_of: datetime | None = None
    created_at: datetime | None = None
    published_at: datetime | None = None
    names: Mapping[str, InputNames] = field(default_factory=dict)
    views: tuple[ViewRecord, ...] = ()
    held: bool = False
    edges: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    failures: int = 0
    own_scans: int = 0
    default_collation: Collation = Collation.OTHER
    awaits_rebuild: bool = False
    creator: str | None = None

    def suspended(self, reason: str, *, awaits_rebuild: bool = False) -> StreamTable:
        """Return the table as it is after it was suspended, with the reason."""
        status, awaits = Status.SUSPENDED, awaits_rebuild or self.is_uninitialized
        return replace(self, status=status, reason=reason, awaits_rebuild=awaits)

    @property
    def is_uninitialized(self) -> bool:
        """Whether it was created without rows, and no refresh has filled it yet."""
        return self.awaits_rebuild and self.epoch == 0

    @property
    def is_to_be_rebuilt(self) -> bool:
        """Whether the next refresh rebuilds it, unless somebody suspended it by hand.

        `State.to_be_rebuilt` leaves out what has to wait for a source.
        """
        return self.awaits_rebuild and self.status is Status.SUSPENDED and not self.held


def taken_in(table: StreamTable, relation: str) -> int:
    """Return the epoch up to which a table has taken in an input; a missing frontier is a bug."""
    return 0 if table.epoch == 0 else table.frontier[relation]


def is_stale(table: StreamTable) -> bool:
    """Return whether the table has to be rebuilt: an input of it was, or it was never filled."""
    if table.epoch == 0:
        return table.is_uninitialized
    return any(taken_in(table, name) == 0 for name in table.inputs)


@dataclass(frozen=True)
class Access:
    """The access path of a stage to an input of which it read `kept` of `rows`, by `keys` keys.

    `way` is probe (PostgreSQL's index on a source), index (an index of ours beside the files), scan
    (of the key's column in the files), or pruned (a scan that left row groups out).
    """

    relation: str
    version: str
    way: str
    keys: int
    kept: int
    rows: int


@dataclass(frozen=True)
class StageRun:
    """The run of one stage of a refresh: its mode, the reason, and the rows it read and wrote.

    Rows are those of the inputs' logs and changes, as they are stored; for inputs in `accesses`
    those that were kept. `iterations` are the rounds of a stage that is a loop, else None.
    """

    relation: str
    mode: str
    reason: str
    rows_read: int
    rows_written: int
    seconds: float
    iterations: int | None = None
    accesses: tuple[Access, ...] = ()


@dataclass(frozen=True)
class Effort:
    """The input of a refresh, its estimated costs (incremental and full), and its actual cost.

    `changed` gives for each changed input the rows that came in, `stored` how many rows the logs
    of all inputs have. `seconds` are those of computing, without the cut and publishing, which take
    the same in both modes. `incremental` and `full` are the estimates, None where there was none.
    While Spark is not `warm` everything takes longer. `first` is the refresh that builds the table.
    """

    changed: Mapping[str, int]
    stored: int
    seconds: float = 0.0
    incremental: float | None = None
    full: float | None = None
    warm: bool = True
    first: bool = False

    @property
    def rows(self) -> int:
        """How many rows came in."""
        return sum(self.changed.values())


@dataclass(frozen=True)
class Refresh:
    """One line of the refresh history; `id` is given by the catalog.

    `table` is the relation id of the stream table, so a table dropped and made again under its old
    name does not inherit a history. `mode` is FULL, DIFFERENTIAL or SKIPPED, and `reason` the
    reason for it; `phases` are seconds by name in order; `versions` the Delta version of every
    relation written; `stages` the runs of the stages. `iterations` are the rounds in which the
    tables of a cycle came to their fixed point, None for a table in no cycle. `strata_skipped`
    counts the strata that the refresh did not have to check. `group` has the relations of all
    stream tables that were refreshed as one, none if it was alone. `effort` is None where no stage
    had to run, and in lines of versions that did not record it.
    """

    table: str
    epoch: int
    mode: str
    reason: str
    rows_inserted: int
    rows_deleted: int
    phases: Mapping[str, float]
    spark_jobs: int
    started_at: datetime
    finished_at: datetime
    versions: Mapping[str, int] = field(default_factory=dict)
    stages: tuple[StageRun, ...] = ()
    error: str | None = None
    iterations: int | None = None
    strata_skipped: int = 0
    group: tuple[str, ...] = ()
    effort: Effort | None = None
    id: int | None = None


@dataclass(frozen=True)
class StratumTicks:
    """The number of ticks of a daemon that refreshed tables of a stratum, or skipped the stratum.

    `skipped_last` says whether the latest tick skipped it; that tick ended at `last_tick_at`.
    """

    stratum: int
    refreshed: int = 0
    skipped: int = 0
    skipped_last: bool = False
    last_tick_at: datetime | None = None

    def then(self, later: StratumTicks) -> StratumTicks:
        """Return the sum of these ticks and of those that came later."""
        return replace(
            later,
            refreshed=self.refreshed + later.refreshed,
            skipped=self.skipped + later.skipped,
        )


@dataclass(frozen=True)
class TierInForce:
    """The tier that a daemon gives to a table whose tier depends on reads, and reads by others.

    At `next_at` the table gets `next_tier` if nobody reads it until then; None if its tier stays.
    """

    relation: str
    tier: str
    reads_per_minute: float
    next_tier: str | None = None
    next_at: datetime | None = None


@dataclass(frozen=True)
class Receipt:
    """The recorded result of a verify: the rows compared, the epochs, and the differences.

    `table` is the relation id of the stream table or source; `id` is given by the catalog. `oracle`
    gave the answer that the table was compared with: spark or postgres. `covered` says which rows
    were compared, None if all were. `definition` is the fingerprint of the definition that it was
    made for, None of an earlier version; `table` follows a table that is altered or rebuilt.
    """

    table: str
    epoch: int
    equal: bool
    rows: int
    missing: int
    surplus: int
    tolerance: float | None
    detail: Mapping[str, Any]
    verified_at: datetime
    oracle: str = "spark"
    covered: Mapping[str, Any] | None = None
    definition: str | None = None
    id: int | None = None


@dataclass(frozen=True)
class Lease:
    """The right to write, from `acquired_at` until `fence` is no longer the newest number.

    `pid` is the operating system's id of the holding process. A holder that `serves` is there to
    stay, and takes the requests of others.
    """

    fence: int
    holder: str
    pid: int
    acquired_at: datetime
    serves: bool = False


@dataclass(frozen=True)
class Heartbeat:
    """The age of a daemon's heartbeat, and for how long its loop was in one round at that time.

    `busy` names work of the loop, or work that it waits for, which may take long; None for none.
    """

    age: timedelta
    in_round: timedelta
    busy: str | None = None


class RequestState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class Request:
    """A command queued for the holder of the lease, its progress and its result.

    `progress` has the activity under way, the amount done, and the total; `cancel` requests that it
    stops; `fence` is the number of the lease under which it was begun. `error` is a HeadraceError
    in JSON.
    """

    id: int
    command: Mapping[str, Any]
    requested_by: str
    requested_at: datetime
    state: RequestState = RequestState.QUEUED
    started_at: datetime | None = None
    finished_at: datetime | None = None
    progress: Mapping[str, Any] | None = None
    cancel: bool = False
    fence: int | None = None
    result: Any = None
    error: Mapping[str, Any] | None = None
