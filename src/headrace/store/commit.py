"""One Delta commit from exactly one version, and the log as delta-rs reads it back."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from headrace.store.actions import add_action, remove_action
from headrace.store.failure import behind, lease_lost, unavailable, unreadable
from headrace.store.layout import EPOCH, WEIGHT, Arrangement, columns_of, stored
from headrace.store.location import StoreLocation
from headrace.store.log import LogFile, Pin, RelationLog, in_order

# Without this delta-rs would retry a stale append on top of the newest version.
EXACT = CommitProperties(max_commit_retries=0)
LABEL = "headrace"
ORDER = "headrace.order"
APART = "headrace.apart"
LOG_FOLDER = "_delta_log"
LAST_CHECKPOINT = f"{LOG_FOLDER}/_last_checkpoint"
CHECKPOINT_SUFFIX = ".checkpoint.parquet"
# The number of actions of a commit besides its description, which comes first.
ACTIONS = "headrace.actions"
NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
# Removed files are not remembered in checkpoints, which would grow with every commit: vacuum keeps
# a record of its own.
CONFIGURATION = {
    "delta.enableExpiredLogCleanup": "false",
    "delta.deletedFileRetentionDuration": "interval 0 seconds",
}
# delta-rs replays every commit since the last checkpoint at each commit (0.2 ms each).
CHECKPOINT_EVERY = 10
# It also lists all commits at each commit. Pins are never so far behind.
VERSIONS_KEPT = 100

logger = logging.getLogger(__name__)


class Commits:
    """The Delta tables of a place, opened once each.

    A commit lands as version `pin.version + 1` or not at all: the version's log file is created
    only if it is absent, whatever other processes do. delta-rs reads it back before the next
    one; a thread does that ahead, while the caller does other things.
    """

    def __init__(self, place: StoreLocation) -> None:
        self._place = place
        self._opened: dict[str, DeltaTable] = {}
        self._reader = ThreadPoolExecutor(1, "headrace-log")
        self._read_ahead: dict[str, Future[None]] = {}
        self._lock = Lock()

    def create(self, relation: str, columns: pa.Schema, arrangement: Arrangement) -> RelationLog:
        """Create the table at version 0; it must not exist."""
        try:
            self._place.prepare()
            table = DeltaTable.create(
                self._place.uri(relation),
                stored(columns),
                configuration={**CONFIGURATION, **_table_settings(arrangement)},
                raise_if_key_not_exists=False,
                storage_options=dict(self._place.options),
                commit_properties=EXACT,
                post_commithook_properties=NO_HOOKS,
            )
            self._place.make_durable(relation, [log_path(0)], new=True)
        except (OSError, DeltaError) as error:
            raise unavailable(error, self._place, writing=True) from error
        self._opened[relation] = table
        return RelationLog(0, columns_of(columns), (), arrangement)

    def check(self, relation: str, pin: Pin) -> DeltaTable:
        """Return the opened table; raise unless it is exactly at the pin's version."""
        table = self._newest(relation, pin)
        if table.version() < pin.version:
            raise behind(relation, pin, f"the log ends at version {table.version()}")
        if table.version() > pin.version:
            raise lease_lost(relation, pin)
        return table

    def commit(
        self,
        relation: str,
        pin: Pin,
        log: RelationLog,
        added: tuple[LogFile, ...] = (),
        removed: tuple[LogFile, ...] = (),
        *,
        compaction: bool = False,
    ) -> RelationLog:
        """Add and remove files in one commit from exactly the pin's version.

        A `compaction` changes files and no rows; the commit records that.
        """
        table = self.check(relation, pin)
        now = int(time.time() * 1000)
        paths = {file: self._place.path_in(relation, file.uri) for file in added + removed}
        actions: list[AddAction | RemoveAction] = [
            *(add_action(paths[file], file, now, not compaction) for file in added),
            *(remove_action(paths[file], file, now, not compaction) for file in removed),
        ]
        version = pin.version + 1
        try:
            table.create_write_transaction(
                actions,
                "append",
                table.schema(),
                commit_properties=_properties(len(actions), compaction=compaction),
                post_commithook_properties=NO_HOOKS,
            )
            self._place.make_durable(
                relation, (*(paths[file] for file in added), log_path(version))
            )
        except CommitFailedError as error:
            self.forget(relation)
            raise lease_lost(relation, pin) from error
        except (OSError, DeltaError) as error:
            self.forget(relation)
            ends_at = self._newest(relation, pin).version()
            if ends_at < pin.version:
                raise behind(relation, pin, f"the log ends at version {ends_at}") from error
            with suppress(OSError):
                self.require_whole(relation, pin, pin.version)
            raise unavailable(error, self._place, writing=True) from error
        if version % CHECKPOINT_EVERY == 0:
            self._checkpoint(relation, table)
        else:
            self._read_ahead[relation] = self._reader.submit(table.update_incremental)
        return log.after_commit(added, removed)

    def is_compaction(self, relation: str, version: int) -> bool:
        """Return whether the commit of a version changed files and no rows."""
        actions = self._actions(relation, Pin(version, 0))
        return any(action.get("commitInfo", {}).get(LABEL) == "compaction" for action in actions)

    def require_whole(self, relation: str, pin: Pin, newest: int) -> None:
        """Raise `store-behind` if a commit since the last checkpoint has lost some of its lines.

        The newest commit has to exist also if a checkpoint has it: delta-rs adds none without it.
        delta-rs accepts a truncated commit file as a whole commit if it ends after a line, and an
        empty one as a commit without actions.
        """
        entries = self._place.files.get_file_info(
            pafs.FileSelector(f"{relation}/{LOG_FOLDER}", allow_not_found=True)
        )
        checkpoints = [
            version_of(entry.base_name)
            for entry in entries
            if entry.base_name.endswith(CHECKPOINT_SUFFIX)
        ]
        first = max((version for version in checkpoints if version <= newest), default=0)
        if log_path(newest) not in {f"{LOG_FOLDER}/{entry.base_name}" for entry in entries}:
            raise behind(relation, pin, f"the commit of version {newest} does not exist")
        for version in range(first + 1, newest + 1):
            info, *others = self._actions(relation, Pin(version, pin.epoch)) or [{}]
            description = info.get("commitInfo")
            if description is None or len(others) < int(description.get(ACTIONS, 0)):
                raise behind(relation, pin, f"the commit of version {version} is truncated")

    def _actions(self, relation: str, pin: Pin) -> list[dict[str, Any]]:
        """Return the lines of the commit of the pin's version."""
        path = self._place.path(self._place.uri(relation, log_path(pin.version)))
        try:
            with self._place.files.open_input_stream(path) as commit:
                return [json.loads(line) for line in commit.read().splitlines() if line]
        except (OSError, ValueError) as error:
            problem = f"the commit of version {pin.version} cannot be read"
            raise unreadable(error, self._place, relation, pin, problem) from error

    def newest(self, relation: str, pin: Pin) -> RelationLog:
        """Return the log at its newest version, wherever the pin is."""
        self.forget(relation)
        return self._log(relation, pin, self._newest(relation, pin))

    def at(self, relation: str, pin: Pin) -> RelationLog:
        """Return the log at the pin's version."""
        table = self._opened_table(relation)
        if table is not None and table.version() == pin.version:
            log = self._log(relation, pin, table)
            # A commit may have moved the table on meanwhile.
            if log.version == pin.version:
                return log
        try:
            table = self._open(relation, pin.version)
        except (OSError, ValueError, DeltaError) as error:
            self.forget(relation)
            newest = self._newest(relation, pin).version()
            problem = f"the log's newest version is {newest}, and the pinned version cannot be read"
            raise unreadable(error, self._place, relation, pin, problem) from error
        return self._log(relation, pin, table)

    def forget(self, relation: str) -> None:
        """Close the table; the next use reads its log again."""
        self._opened_table(relation)
        self._opened.pop(relation, None)

    def _opened_table(self, relation: str) -> DeltaTable | None:
        """Return the opened table, after the read that is under way; None if it is closed."""
        reading = self._read_ahead.get(relation)
        if reading is not None:
            # A read that has not begun, or failed, is repeated by its next user, and fails there.
            if not reading.cancel():
                with suppress(Exception):
                    reading.result()
            # Several threads may read a log that one of them moves on.
            with self._lock:
                if self._read_ahead.get(relation) is reading:
                    del self._read_ahead[relation]
        return self._opened.get(relation)

    def _newest(self, relation: str, pin: Pin) -> DeltaTable:
        """Return the table at its newest version, or as opened if that is not behind the pin."""
        table = self._opened_table(relation)
        try:
            if table is None:
                table = self._opened[relation] = self._open(relation)
            elif table.version() < pin.version:
                table.update_incremental()
        except TableNotFoundError as error:
            self.forget(relation)
            if self._place.trouble(writing=False) is None:
                raise behind(relation, pin, "the table does not exist") from error
            raise unavailable(error, self._place, writing=False) from error
        except (OSError, ValueError, DeltaError) as error:
            self.forget(relation)
            problem = f"the log cannot be read: {error}"
            raise unreadable(error, self._place, relation, pin, problem) from error
        return table

    def _open(self, relation: str, version: int | None = None) -> DeltaTable:
        uri, options = self._place.uri(relation), dict(self._place.options)
        return DeltaTable(uri, version=version, storage_options=options)

    def _log(self, relation: str, pin: Pin, table: DeltaTable) -> RelationLog:
        """Return the log of the opened table, by the statistics that our commits carry."""
        version = -1
        live: list[dict[str, Any]] = []
        # Another thread may update the table: files and version have to belong together.
        try:
            while version != table.version():
                version = table.version()
                live = pa.table(table.get_add_actions(flatten=True)).to_pylist()
        except (OSError, ValueError, DeltaError) as error:
            self.forget(relation)
            problem = f"the files of version {version} cannot be read from the log"
            raise unreadable(error, self._place, relation, pin, problem) from error
        for action in live:
            if None in (action["num_records"], action[f"min.{EPOCH}"], action[f"max.{EPOCH}"]):
                raise behind(relation, pin, f"{action['path']} was added by another program")
        files = tuple(
            LogFile(
                uri=self._place.uri(relation, action["path"]),
                rows=action["num_records"],
                bytes=action["size_bytes"],
                first_epoch=action[f"min.{EPOCH}"],
                last_epoch=action[f"max.{EPOCH}"],
                least_weight=action.get(f"min.{WEIGHT}"),
            )
            for action in live
        )
        columns = columns_of(pa.schema(table.schema().to_arrow()))
        arrangement = _arrangement(table.metadata().configuration)
        return RelationLog(version, columns, in_order(files), arrangement)

    def _checkpoint(self, relation: str, table: DeltaTable) -> None:
        """Write a checkpoint, so that opening and committing stay cheap; on failure only warn.

        The table is reopened afterwards: an open one never uses its own checkpoint.
        """
        try:
            table.update_incremental()
            table.create_checkpoint()
            # A power cut must not leave an empty checkpoint in place of the commits it replaces.
            self._place.make_durable(relation, (checkpoint_path(table.version()), LAST_CHECKPOINT))
            self._forget_versions(relation, table.version() - VERSIONS_KEPT)
        except (OSError, DeltaError) as error:
            logger.warning("checkpoint failed", extra={"relation": relation, "error": str(error)})
        self.forget(relation)

    def _forget_versions(self, relation: str, oldest: int) -> None:
        """Remove the commits before the checkpoint that the version `oldest` is read from."""
        files = self._place.files
        entries = files.get_file_info(pafs.FileSelector(f"{relation}/{LOG_FOLDER}"))
        versions = {entry.path: version_of(entry.base_name) for entry in entries}
        checkpoints = [v for path, v in versions.items() if path.endswith(CHECKPOINT_SUFFIX)]
        first = max((v for v in checkpoints if v <= oldest), default=0)
        for path, version in versions.items():
            if 0 <= version < first:
                files.delete_file(path)


def _properties(actions: int, *, compaction: bool) -> CommitProperties:
    """Return the description of a commit."""
    label = {LABEL: "compaction"} if compaction else {}
    return CommitProperties(custom_metadata={ACTIONS: str(actions), **label}, max_commit_retries=0)


def _table_settings(arrangement: Arrangement) -> dict[str, str]:
    """Return an arrangement as settings of a Delta table."""
    apart = {} if arrangement.apart is None else {APART: arrangement.apart}
    return {ORDER: json.dumps(arrangement.order), **apart}


def _arrangement(configuration: Mapping[str, str]) -> Arrangement:
    """Return the arrangement that a Delta table was created with; older tables have none."""
    return Arrangement(tuple(json.loads(configuration.get(ORDER, "[]"))), configuration.get(APART))


def version_of(name: str) -> int:
    """Return the version that a file of Delta's log belongs to; -1 for other files."""
    number = name.partition(".")[0]
    return int(number) if number.isdecimal() else -1


def log_path(version: int) -> str:
    """Return the path of a commit; Delta prescribes the name."""
    return f"{LOG_FOLDER}/{version:020d}.json"


def checkpoint_path(version: int) -> str:
    """Return the path of a checkpoint; Delta prescribes the name."""
    return f"{LOG_FOLDER}/{version:020d}{CHECKPOINT_SUFFIX}"
