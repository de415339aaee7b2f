"""Reasons to recopy: the recorded state and the changes do not lead to the present rows (pure)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Protocol

from headrace.capture.health import CaptureHealth
from headrace.source.table import SourceColumn, SourceTable


class Captured(Protocol):
    """A source as it was recorded at the last cut; the catalog's record is one.

    Columns with a type are captured. `storage` is that of the cut's own tables.
    """

    @property
    def oid(self) -> int: ...
    @property
    def schema(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def columns(self) -> tuple[SourceColumn, ...]: ...
    @property
    def keys(self) -> tuple[tuple[int, ...], ...]: ...
    @property
    def storage(self) -> str: ...


def reason_to_copy(
    source: Captured,
    table: SourceTable | None,
    health: CaptureHealth | None,
    epoch: int | None = None,
) -> str | None:
    """Return why buffered changes do not lead from recorded to present rows; None if they do.

    `table` and `health` are those in a later snapshot, None where they do not exist. `epoch` is
    that of the last cut. A source database that has acknowledged a later epoch has deleted changes
    that are missing here: the project was restored from a backup.
    """
    if table is None:
        return "the table was dropped"
    rewritten = rewrite(source.storage, table.storage)
    if rewritten is not None:
        return rewritten
    if health is None:
        return "capture is not set up"
    if epoch is not None and health.acknowledged_epoch > epoch:
        return f"it was taken in up to epoch {health.acknowledged_epoch}, which is not known here"
    return (
        health.fault(captured_part(source, table), table)
        or changed_columns(source, table)
        or health.emptied()
        or health.copy_due
        or health.recopy_reason
    )


def reason_to_copy_followed(source: Captured, table: SourceTable | None) -> str | None:
    """Return why changes in the WAL do not lead from recorded to present rows; None if they do."""
    if table is None:
        return "the table was dropped"
    rewritten = rewrite(source.storage, table.storage, by_triggers=False)
    if rewritten is not None:
        return rewritten
    return changed_columns(source, table)


def changed_columns(source: Captured, table: SourceTable) -> str | None:
    """Return the reason to recopy if a captured column has another type or name, or is gone.

    Triggers may record a column of another type as before, such as a longer varchar.
    """
    captured = sum(column.type is not None for column in source.columns)
    if len(captured_part(source, table).stored) < captured:
        return "captured columns are not what they were"
    return None


def captured_part(source: Captured, table: SourceTable) -> SourceTable:
    """Return the table with only those columns typed that are captured and unchanged."""
    same = {
        (column.number, column.name, column.type)
        for column in source.columns
        if column.type is not None
    }
    return replace(
        table,
        columns=tuple(
            column
            if (column.number, column.name, column.type) in same
            else replace(column, type=None)
            for column in table.columns
        ),
    )


def rewrite(before: str, now: str, *, by_triggers: bool = True) -> str | None:
    """Return what changed a table's rows behind its triggers, from `SourceTable.storage`; or None.

    A new label of an enum changes no row; a renamed label changes how rows read. Where rows are not
    captured `by_triggers`, changes of triggers do not matter.
    """
    if not before:
        return "the table was never copied"
    if before == now:
        return None
    old, new = json.loads(before), json.loads(now)
    if old["files"] != new["files"]:
        return "the table was truncated or rewritten, or its partitions changed"
    if by_triggers and old["triggers"] != new["triggers"]:
        return "the triggers were disabled or replaced for a while"
    if by_triggers and "marks" in old and _were_changed(old, new):
        return "rights of the triggers were changed, so that they may have recorded nothing"
    if _columns_were_changed(old.get("columns", {}), new.get("columns", {})):
        return "columns were altered, so that changes may have been recorded under other names"
    if relabelled(before, now):
        return "a label of an enum was renamed"
    return None


def _columns_were_changed(old: dict[str, str], new: dict[str, str]) -> bool:
    """Return whether columns may have had other names for a while, or the table a parent.

    Writing to a parent fires no triggers of its children. A column that is as before but for its
    xmin was changed and changed back; if several columns are different, so may some of them be.
    A change of one of several columns is harmless, a new default for example.
    """
    common = old.keys() & new.keys()
    changed = {number for number in common if old[number] != new[number]}
    changed_back = any(_described(old[number]) == _described(new[number]) for number in changed)
    return changed_back or len(changed) > 1 or (bool(changed) and changed == common)


def _described(column: str) -> str:
    """Return a column of `SourceTable.storage` without its xmin."""
    return column.partition(" ")[2]


def _were_changed(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Return whether a right that recording needs may have been missing for a while.

    A function with another text was given another limit by us; a function that was altered and has
    the same text was a different function meanwhile.
    """
    if old["marks"] != new["marks"]:
        return True
    before, now = old["function"] or {}, new["function"] or {}
    if before.get("rights") != now.get("rights"):
        return True
    return before.get("text") == now.get("text") and before != now


def relabelled(before: str, now: str) -> bool:
    """Return whether a stored enum value reads differently now, or did for a while."""
    if not before:
        return False
    old, new = json.loads(before), json.loads(now)
    # An earlier version of Headrace has recorded no versions.
    return any(
        oid in new.get(part, {}) and new[part][oid] != value
        for part in ("labels", "label_versions")
        for oid, value in old.get(part, {}).items()
    )
