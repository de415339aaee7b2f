"""What is read of the log for a cut takes memory by the batch, however many transactions come."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from headrace.capture.cut import OpenCut
from headrace.capture.wal.decoder import Decoded, Transactions
from headrace.capture.wal.read import _Reading

BATCHES, EACH = 20, 10_000


def batch(number: int) -> Decoded:
    """Transactions of one batch, none of which changed what is wanted."""
    places = np.arange(number * EACH, (number + 1) * EACH)
    return Decoded(Transactions(places, places + 3, places * 8, places * 8 + 8), None, ())


def test_many_transactions_take_no_memory(tmp_path: Path) -> None:
    last = BATCHES * EACH + 3
    cut = SimpleNamespace(cut=SimpleNamespace(snapshot=f"{last}:{last}:", position=1 << 40))
    reading = _Reading(cast("OpenCut", cast("Any", cut)), {}, None, tmp_path)
    reading.take(batch(0))
    tracemalloc.start()
    try:
        for number in range(1, BATCHES):
            reading.take(batch(number))
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 100_000, "less than a byte a transaction"
