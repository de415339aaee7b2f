"""Which files of a log are worth merging into one (pure).

Like an LSM tree: small files are merged once there are enough of them, and a merged file again
only when those beside it have grown to its size, so that each row is rewritten a few times at
most while the number of live files stays small.

A merged file has the epochs of all files that it replaces, and its rows cannot be separated by
epoch again. So no merge crosses an epoch that some reader is at: what came before the epoch and
what came after it stay in different files, however far the reader lags behind.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import groupby

from headrace.store.layout import SMALL_ROWS
from headrace.store.log import LogFile

# Every small file costs Spark some milliseconds to open, and every merge some twenty to write.
FEWEST_FILES = 8
# An older file joins a merge if it is not much larger than all newer ones of it together.
LARGEST_RATIO = 4


def worth_merging(files: tuple[LogFile, ...], kept: Iterable[int]) -> tuple[LogFile, ...]:
    """Return the files to merge, if any. `files` come oldest first, `kept` are the readers' epochs.

    What is chosen is a run without gaps, so that merging it moves no row past a row of another
    epoch.
    """
    between = sorted(kept)
    spans = groupby(files, lambda file: bisect_left(between, file.last_epoch))
    for span in reversed([tuple(span) for _, span in spans]):
        if run := _run(span):
            return run
    return ()


def _run(files: tuple[LogFile, ...]) -> tuple[LogFile, ...]:
    """Return the newest files that are alike in size, if they are enough.

    Files that were written together count by those of them that are small, at least as one.
    """
    together = groupby(files, lambda file: (file.first_epoch, file.last_epoch))
    run: tuple[LogFile, ...] = ()
    rows = number = 0
    for unit in reversed([tuple(unit) for _, unit in together]):
        size = sum(file.rows for file in unit)
        if run and size > LARGEST_RATIO * rows:
            break
        run = unit + run
        rows += size
        number += max(1, sum(file.rows < SMALL_ROWS for file in unit))
    return run if number >= FEWEST_FILES else ()
