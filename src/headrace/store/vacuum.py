"""Removing files from a relation's folder that no reader can need any more.

Files that a compaction replaced are not deleted at once: a reader with an older list of files may
still read them. Files do not record since when the log no longer names them, so a record beside
them has the time at which each was first seen unnamed. Losing the record only restarts the wait.

The rows of a write that failed or was rolled back are removed at once: nobody can have read them.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from datetime import timedelta

import pyarrow.fs as pafs

from headrace.store.location import StoreLocation
from headrace.store.log import LogFile

# The prefix of entries that are not data: Delta's own log, and the record.
HIDDEN = "_"
RECORD = "_unnamed.json"
SCRATCH = "scratch-"
ROWS, PARTS = "rows-", "parts-"
WRITTEN = re.compile(rf"(?:{ROWS}|{PARTS})(\d+)-")
# Without a buffer, pyarrow passes the file system of delta-rs buffers that it rejects.
BUFFER_BYTES = 65_536


def vacuum(place: StoreLocation, relation: str, named: Iterable[str], older_than: timedelta) -> int:
    """Remove files and folders unnamed for longer than `older_than`; return how many.

    `named` are the paths of the files that the log names. A folder is kept whole as long as one
    file in it is named.
    """
    entries = _unnamed(place, relation, named)
    before, now = _recorded(place, relation), time.time()
    unnamed = {entry.base_name: before.get(entry.base_name, now) for entry in entries}
    due = [entry for entry in entries if is_over(unnamed[entry.base_name], older_than)]
    for entry in due:
        _remove(place, entry)
        del unnamed[entry.base_name]
    if unnamed != before:
        with place.files.open_output_stream(
            f"{relation}/{RECORD}", buffer_size=BUFFER_BYTES
        ) as record:
            record.write(json.dumps(unnamed).encode())
    return len(due)


def unnamed_since(place: StoreLocation, relation: str) -> float:
    """Return when the oldest recorded file was first seen unnamed; infinity without any."""
    return min(_recorded(place, relation).values(), default=math.inf)


def is_over(since: float, older_than: timedelta) -> bool:
    """Return whether a file unnamed since then has waited for `older_than`."""
    return time.time() - since >= older_than.total_seconds()


def lost_files(place: StoreLocation, files: Iterable[LogFile]) -> str | None:
    """Return a description of the first missing or truncated file of a log; None without one."""
    paths = {place.path(file.uri): file for file in files}
    for entry in place.files.get_file_info(list(paths)):
        file = paths[entry.path]
        if entry.type != pafs.FileType.File:
            return f"{file.uri} is missing"
        if entry.size != file.bytes:
            return f"{file.uri} has {entry.size} bytes, not {file.bytes}"
    return None


def clear_unpublished(
    place: StoreLocation, relation: str, named: Iterable[str], epoch: int
) -> None:
    """Remove what a dead writer left: rows beyond the epoch, and scratch folders.

    A failed removal is harmless: the next call or a vacuum retries it.
    """
    for entry in _unnamed(place, relation, named):
        if entry.base_name.startswith(SCRATCH) or epoch_written(entry.base_name) > epoch:
            with suppress(OSError):
                _remove(place, entry)


def clear_written(
    place: StoreLocation, relation: str, named: Iterable[str], written: Iterable[str]
) -> None:
    """Remove files and folders, given by their paths, that were written for a failed commit.

    A failed removal is harmless. Files that the log does name are kept.
    """
    names = frozenset(written)
    with suppress(OSError):
        for entry in _unnamed(place, relation, named):
            if entry.base_name in names:
                _remove(place, entry)


def epoch_written(name: str) -> int:
    """Return the epoch that a file or folder was written for, by its name; 0 without one."""
    written = WRITTEN.match(name)
    return int(written[1]) if written else 0


def _unnamed(place: StoreLocation, relation: str, named: Iterable[str]) -> list[pafs.FileInfo]:
    named_entries = {path.partition("/")[0] for path in named}
    entries = place.files.get_file_info(pafs.FileSelector(relation, allow_not_found=True))
    return [
        e
        for e in entries
        if not e.base_name.startswith(HIDDEN) and e.base_name not in named_entries
    ]


def _recorded(place: StoreLocation, relation: str) -> dict[str, float]:
    try:
        with place.files.open_input_stream(f"{relation}/{RECORD}") as record:
            return dict(json.loads(record.read()))
    except (FileNotFoundError, ValueError):
        return {}


def _remove(place: StoreLocation, entry: pafs.FileInfo) -> None:
    if entry.is_file:
        place.files.delete_file(entry.path)
    else:
        place.files.delete_dir(entry.path)
