"""Of several writers from one pin exactly one wins, in threads and in processes."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from deltalake import DeltaTable

from headrace.errors import NeedsReinit, Unavailable
from headrace.store import DeltaStore, Pin
from tests.store.conftest import COLUMNS, bag, weighted_rows

WRITERS, ROUNDS = 6, 12

RACER = """
import sys, time
import pyarrow as pa
from headrace.errors import Unavailable
from headrace.store import DeltaStore, Pin
root, start, me = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
store, rows = DeltaStore(root), pa.table({"_weight": [1], "c1": [me], "c2": ["a"]})
store.files("r1", Pin(0, 0), 0, 0)
time.sleep(max(0.0, start - time.time()))
try:
    store.append("r1", Pin(0, 0), 1, rows)
    sys.stdout.write("won")
except Unavailable as error:
    sys.stdout.write(error.code)
"""


def attempt(store: DeltaStore, pin: Pin, number: int, start: Barrier) -> Pin | str:
    """The next pin, or the code of the refusal."""
    start.wait()
    try:
        return store.append("r1", pin, pin.epoch + 1, weighted_rows((1, number, "a")))
    except Unavailable as error:
        return error.code


def test_threads_with_stores_of_their_own(tmp_path: Path) -> None:
    stores = [DeltaStore(tmp_path) for _ in range(WRITERS)]
    pin = stores[0].create("r1", COLUMNS)
    with ThreadPoolExecutor(WRITERS) as pool:
        for _ in range(ROUNDS):
            start = Barrier(WRITERS)
            tries = [
                pool.submit(attempt, store, pin, number, start)
                for number, store in enumerate(stores)
            ]
            outcomes = [each.result() for each in tries]
            pin = Pin(pin.version + 1, pin.epoch + 1)
            assert outcomes.count(pin) == 1
            assert outcomes.count("lease-lost") == WRITERS - 1
            expected = {(1, outcomes.index(pin), "a"): 1}
            assert bag(stores[0].read("r1", pin, pin.epoch - 1, pin.epoch)) == expected


def test_processes(tmp_path: Path) -> None:
    store = DeltaStore(tmp_path)
    store.create("r1", COLUMNS)
    start = str(time.time() + 3)
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(tmp_path), start, str(number)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    outcomes = sorted(racer.communicate(timeout=60)[0] for racer in racers)
    assert outcomes == ["lease-lost", "lease-lost", "lease-lost", "won"]
    assert store.read("r1", Pin(1, 1), 0, 1).num_rows == 1


def test_a_loser_leaves_no_rows_and_no_file(tmp_path: Path) -> None:
    first, second = DeltaStore(tmp_path), DeltaStore(tmp_path)
    pin = first.create("r1", COLUMNS)
    second.files("r1", pin, 0, 0)
    new = first.append("r1", pin, 1, weighted_rows((1, 1, "a")))
    with pytest.raises(Unavailable) as error:
        second.append("r1", pin, 1, weighted_rows((1, 2, "b")))
    assert error.value.code == "lease-lost"
    assert bag(second.read("r1", new, 0, 1)) == {(1, 1, "a"): 1}
    assert len(list((tmp_path / "r1").glob("*.parquet"))) == 1


def test_a_stale_rollback_cannot_remove_what_another_process_published(tmp_path: Path) -> None:
    first, second = DeltaStore(tmp_path), DeltaStore(tmp_path)
    pin = first.append("r1", first.create("r1", COLUMNS), 1, weighted_rows((1, 1, "a")))
    first.append("r1", pin, 2, weighted_rows((1, 2, "b")))

    newest = second._commits.newest("r1", pin)
    back = first.rollback("r1", pin)
    stale = Pin(newest.version, pin.epoch)
    with pytest.raises(Unavailable) as error:
        second._commits.commit("r1", stale, newest, removed=newest.beyond(pin.epoch))
    assert error.value.code == "lease-lost"
    assert DeltaTable(tmp_path / "r1").version() == back.version


def test_a_reader_keeps_its_pin_while_another_process_writes(tmp_path: Path) -> None:
    writer, reader = DeltaStore(tmp_path), DeltaStore(tmp_path)
    pin = writer.append("r1", writer.create("r1", COLUMNS), 1, weighted_rows((1, 1, "a")))
    before = reader.files("r1", pin, 0, 1)
    new = writer.append("r1", pin, 2, weighted_rows((1, 2, "b")))
    assert reader.files("r1", pin, 0, 1) == before
    assert DeltaStore(tmp_path).files("r1", pin, 0, 1) == before
    assert bag(reader.read("r1", new, 1, 2)) == {(1, 2, "b"): 1}


def test_a_writer_goes_on_where_another_process_was(tmp_path: Path) -> None:
    first, second = DeltaStore(tmp_path), DeltaStore(tmp_path)
    pin = first.create("r1", COLUMNS)
    for epoch in range(1, 26):
        writer = first if epoch % 2 else second
        pin = writer.append("r1", pin, epoch, weighted_rows((1, epoch, "a")))
    assert pin == Pin(25, 25)
    assert first.files("r1", pin, 0, 25) == second.files("r1", pin, 0, 25)


@pytest.mark.parametrize("reopened", [False, True])
def test_a_shortened_log_is_noticed_by_a_running_writer(tmp_path: Path, reopened: bool) -> None:
    store = DeltaStore(tmp_path)
    pin = store.append("r1", store.create("r1", COLUMNS), 1, weighted_rows((1, 1, "a")))
    if reopened:
        store = DeltaStore(tmp_path)
        store.files("r1", pin, 0, 1)
    (tmp_path / "r1" / "_delta_log" / f"{1:020d}.json").unlink()
    with pytest.raises(NeedsReinit) as error:
        store.append("r1", pin, 2, weighted_rows((1, 2, "b")))
    assert error.value.code == "store-behind"
