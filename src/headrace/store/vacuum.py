"""Removing what no reader can need any more from a relation's folder.

Files that a compaction replaced are not deleted at once: whoever took the list of files before it
may still read them. How long something has been unnamed is not to be had from the files, so it is
kept beside them: when each was first seen unnamed. Losing that record only makes the wait start
anew.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from datetime import timedelta

import pyarrow.fs as pafs

from headrace.store.place import Place

# Whatever starts so is not data: Delta's own log, and the record.
HIDDEN = "_"
RECORD = "_unnamed.json"
SCRATCH = "scratch-"
# Unbuffered, the file system of delta-rs is handed buffers that it does not take.
BUFFER_BYTES = 65_536


def vacuum(place: Place, relation: str, named: Iterable[str], older_than: timedelta) -> int:
    """Remove files and folders that have been unnamed for so long; how many were removed.

    `named` are the paths of the files that the log names. A folder is kept whole as long as one
    file in it is named.
    """
    kept = {path.partition("/")[0] for path in named}
    found = [entry for entry in _entries(place, relation) if entry.base_name not in kept]
    before, now = _recorded(place, relation), time.time()
    unnamed = {entry.base_name: before.get(entry.base_name, now) for entry in found}
    due = [e for e in found if now - unnamed[e.base_name] >= older_than.total_seconds()]
    for entry in due:
        _remove(place, entry)
        del unnamed[entry.base_name]
    if unnamed != before:
        with place.files.open_output_stream(
            f"{relation}/{RECORD}", buffer_size=BUFFER_BYTES
        ) as record:
            record.write(json.dumps(unnamed).encode())
    return len(due)


def clear_scratch(place: Place, relation: str) -> None:
    """Remove folders of rows that only passed through; their writer is gone."""
    for entry in _entries(place, relation):
        if entry.base_name.startswith(SCRATCH):
            _remove(place, entry)


def _entries(place: Place, relation: str) -> list[pafs.FileInfo]:
    entries = place.files.get_file_info(pafs.FileSelector(relation, allow_not_found=True))
    return [entry for entry in entries if not entry.base_name.startswith(HIDDEN)]


def _recorded(place: Place, relation: str) -> dict[str, float]:
    try:
        with place.files.open_input_stream(f"{relation}/{RECORD}") as record:
            return dict(json.loads(record.read()))
    except (FileNotFoundError, ValueError):
        return {}


def _remove(place: Place, entry: pafs.FileInfo) -> None:
    if entry.is_file:
        place.files.delete_file(entry.path)
    else:
        place.files.delete_dir(entry.path)
