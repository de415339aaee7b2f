"""Removing what no reader can need any more from a relation's folder.

Files that a compaction replaced are not deleted at once: whoever took the list of files before it
may still read them. How long something has been unnamed is not to be had from the files, so it is
kept beside them: when each was first seen unnamed. Losing that record only makes the wait start
anew.

What nobody can have read goes at once: the rows of a write that failed or was rolled back.
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

# Whatever starts so is not data: Delta's own log, and the record.
HIDDEN = "_"
RECORD = "_unnamed.json"
SCRATCH = "scratch-"
ROWS, PARTS = "rows-", "parts-"
WRITTEN = re.compile(rf"(?:{ROWS}|{PARTS})(\d+)-")
# Unbuffered, the file system of delta-rs is handed buffers that it does not take.
BUFFER_BYTES = 65_536


def vacuum(place: StoreLocation, relation: str, named: Iterable[str], older_than: timedelta) -> int:
    """Remove files and folders that have been unnamed for so long; how many were removed.

    `named` are the paths of the files that the log names. A folder is kept whole as long as one
    file in it is named.
    """
    found = _unnamed(place, relation, named)
    before, now = _recorded(place, relation), time.time()
    unnamed = {entry.base_name: before.get(entry.base_name, now) for entry in found}
    due = [entry for entry in found if is_over(unnamed[entry.base_name], older_than)]
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
    """When the first of the files that wait for their removal was seen; never is infinite."""
    return min(_recorded(place, relation).values(), default=math.inf)


def is_over(since: float, older_than: timedelta) -> bool:
    """Whether what has been unnamed since then has waited for so long."""
    return time.time() - since >= older_than.total_seconds()


def lost_files(place: StoreLocation, files: Iterable[LogFile]) -> str | None:
    """The first of a log's files that is not there, or not as large as it was written."""
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
    """Remove what a writer left that is gone: rows beyond the epoch, and scratch folders.

    Failing to remove one is harmless: it is tried again at the next time, or by a vacuum.
    """
    for entry in _unnamed(place, relation, named):
        if entry.base_name.startswith(SCRATCH) or epoch_written(entry.base_name) > epoch:
            with suppress(OSError):
                _remove(place, entry)


def clear_written(
    place: StoreLocation, relation: str, named: Iterable[str], written: Iterable[str]
) -> None:
    """Remove files and folders, given by their paths, that were written for a failed commit.

    Failing to is harmless, like above. What the log names all the same is kept.
    """
    names = frozenset(written)
    with suppress(OSError):
        for entry in _unnamed(place, relation, named):
            if entry.base_name in names:
                _remove(place, entry)


def epoch_written(name: str) -> int:
    """The epoch that a file or folder was written for, by its name; 0 for what has none."""
    written = WRITTEN.match(name)
    return int(written[1]) if written else 0


def _unnamed(place: StoreLocation, relation: str, named: Iterable[str]) -> list[pafs.FileInfo]:
    kept = {path.partition("/")[0] for path in named}
    entries = place.files.get_file_info(pafs.FileSelector(relation, allow_not_found=True))
    return [e for e in entries if not e.base_name.startswith(HIDDEN) and e.base_name not in kept]


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
