"""Which files of a log are worth summing up into one (pure).

Like an LSM tree: small files are merged once there are enough of them, and a merged file again
only when those beside it have grown to its size, so that each row is rewritten a few times at
most while the number of live files stays small.
"""

from __future__ import annotations

from headrace.store.log import LogFile

# Every small file costs Spark some milliseconds to open.
FEWEST_FILES = 8
# An older file joins a merge if it is not much larger than all newer ones of it together.
LARGEST_RATIO = 4
# More rows than this are not summed up in the driver's memory.
MOST_ROWS = 2_000_000


def worth_merging(files: tuple[LogFile, ...], since: int) -> tuple[LogFile, ...]:
    """The files to sum up, or none. Only files whose epochs are all at or before `since` count.

    `files` come oldest first. What is chosen is a run without gaps, so that merging it moves no
    row past a row of another epoch.
    """
    old = [file for file in files if file.last_epoch <= since]
    run: list[LogFile] = []
    rows = 0
    for file in reversed(old):
        too_large = run and file.rows > LARGEST_RATIO * rows
        if too_large or rows + file.rows > MOST_ROWS:
            break
        run.append(file)
        rows += file.rows
    return tuple(reversed(run)) if len(run) >= FEWEST_FILES else ()
