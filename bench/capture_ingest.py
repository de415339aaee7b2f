"""Changes a second from the database into the source relation, for each way of capture."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any

from bench.capture_worlds import World
from headrace.engine.steps import CopySource, Step

# Of ten changes seven are inserts, two updates and one a delete.
SHARES = {"insert": 7, "update": 2, "delete": 1}
TRANSACTION = 1_000


def ingested(worlds: Sequence[World], changes: int, rounds: int) -> dict[str, Any]:
    """Write the changes, time one ingest of them; the ways in turn."""
    tenth = max(1, changes // 10)
    seconds: dict[str, list[float]] = {world.way: [] for world in worlds}
    for world in worlds:
        _write(world, "insert", 0, tenth * SHARES["insert"])
        world.ingest()
    # Round 0 warms up.
    for number in range(rounds + 1):
        for world in worlds:
            taken = _round(world, number, tenth)
            if number:
                seconds[world.way].append(taken)
    rates = {way: [10 * tenth / one for one in times] for way, times in seconds.items()}
    shares = {
        f"{way}_over_trigger": statistics.median(
            one / other for one, other in zip(rates[way], rates["trigger"], strict=True)
        )
        for way in rates
        if way != "trigger"
    }
    return {
        "changes": 10 * tenth,
        "changes_per_second": {way: round(statistics.median(r)) for way, r in rates.items()},
        **{name: round(share, 2) for name, share in shares.items()},
    }


def _round(world: World, number: int, tenth: int) -> float:
    """Seconds of one ingest. Rows that were there at the cut before are updated and deleted."""
    inserted = tenth * SHARES["insert"]
    low = number * inserted
    _write(world, "update", low, tenth * SHARES["update"])
    _write(world, "delete", low + tenth * SHARES["update"], tenth * SHARES["delete"])
    _write(world, "insert", low + inserted, inserted)
    steps: list[Step] = []
    world.engine.watch = lambda when, step: steps.append(step) if when == "after" else None
    started = time.perf_counter()
    world.ingest()
    seconds = time.perf_counter() - started
    _check(world, steps, tenth)
    return seconds


def _write(world: World, verb: str, low: int, rows: int) -> None:
    """Write rows of `orders` in transactions of at most a thousand."""
    whole, rest = divmod(rows, TRANSACTION)
    world.sql.execute(f"CALL {verb}_orders(%s, %s, %s)", (low, TRANSACTION, whole))
    if rest:
        world.sql.execute(f"CALL {verb}_orders(%s, %s, %s)", (low + whole * TRANSACTION, rest, 1))


def _check(world: World, steps: Sequence[Step], tenth: int) -> None:
    """What the cut gave must be these changes, and not a copy of the table."""
    state, source = world.engine.catalog.state(), world.source("orders")
    assert source is not None
    pin = state.relation(source.relation).pin
    new = world.engine.store.read(source.relation, pin, pin.epoch - 1, pin.epoch)
    wanted = tenth * (SHARES["insert"] + 2 * SHARES["update"] + SHARES["delete"])
    copied = any(isinstance(step, CopySource) for step in steps)
    if copied or len(new) != wanted:
        raise SystemExit(f"{world.way}: {len(new)} rows for {wanted}, copied: {copied}")
