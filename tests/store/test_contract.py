"""What every store keeps, the fake included."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headrace.errors import InternalError, NeedsReinit, Unavailable
from headrace.store import Pin, Store, net
from tests.store.conftest import COLUMNS, bag, weighted_rows

A, B, C = (1, 1, "a"), (1, 2, None), (-1, 1, "a")


def test_a_new_relation_is_empty_at_version_and_epoch_0(store: Store) -> None:
    pin = store.create("r1", COLUMNS)
    assert pin == Pin(0, 0)
    assert store.files("r1", pin, 0, 0) == ()
    assert store.read("r1", pin, 0, 0).schema.names == ["_weight", "c1", "c2"]


def test_an_append_is_one_version_and_its_epoch(store: Store) -> None:
    pin = store.append("r1", store.create("r1", COLUMNS), 7, weighted_rows(A, A, B))
    assert pin == Pin(1, 7)
    assert bag(store.read("r1", pin, 0, 7)) == {A: 2, B: 1}


def test_no_rows_make_no_commit(store: Store) -> None:
    pin = store.append("r1", store.create("r1", COLUMNS), 3, weighted_rows())
    assert pin == Pin(0, 3)
    assert store.read("r1", pin, 0, 3).num_rows == 0


def test_epochs_only_grow(store: Store) -> None:
    pin = store.append("r1", store.create("r1", COLUMNS), 5, weighted_rows(A))
    for epoch in (4, 5):
        with pytest.raises(InternalError):
            store.append("r1", pin, epoch, weighted_rows(A))
        with pytest.raises(InternalError):
            store.extend("r1", pin, epoch, [weighted_rows(), weighted_rows(A)])
        assert store.append("r1", pin, epoch, weighted_rows()) == pin, "nothing is always so"
    assert store.files("r1", pin, 0, 5) == store.files("r1", pin, 4, 5)


def test_reads_are_by_epoch_open_below_and_closed_above(store: Store) -> None:
    pin = store.create("r1", COLUMNS)
    for epoch, row in ((2, A), (4, B), (9, C)):
        pin = store.append("r1", pin, epoch, weighted_rows(row))
    for after, upto, expected in (
        (0, 9, {A: 1, B: 1, C: 1}),
        (2, 9, {B: 1, C: 1}),
        (1, 3, {A: 1}),
        (4, 8, {}),
        (2, 4, {B: 1}),
        (9, 9, {}),
    ):
        assert bag(store.read("r1", pin, after, upto)) == expected
        files = store.files("r1", pin, after, upto)
        assert sum(file.rows for file in files) == sum(expected.values())
        assert all(after < file.first_epoch <= file.last_epoch <= upto for file in files)
        cached = store.cached("r1", pin, after, upto)
        assert cached is not None
        assert bag(cached) == expected


def test_nothing_beyond_the_pin_can_be_asked_for(store: Store) -> None:
    pin = store.create("r1", COLUMNS)
    with pytest.raises(InternalError):
        store.files("r1", pin, 0, 1)


def test_an_old_pin_still_reads_its_own_state(store: Store) -> None:
    old = store.append("r1", store.create("r1", COLUMNS), 1, weighted_rows(A))
    store.append("r1", old, 2, weighted_rows(B))
    assert bag(store.read("r1", old, 0, 1)) == {A: 1}


def test_a_stale_pin_cannot_write(store: Store) -> None:
    pin = store.create("r1", COLUMNS)
    new = store.append("r1", pin, 1, weighted_rows(A))
    with pytest.raises(Unavailable) as error:
        store.append("r1", pin, 2, weighted_rows(B))
    assert error.value.code == "lease-lost"
    assert store.rollback("r1", new) == new


def test_rollback_with_nothing_beyond_gives_the_same_pin(store: Store) -> None:
    pin = store.append("r1", store.create("r1", COLUMNS), 1, weighted_rows(A))
    assert store.rollback("r1", pin) == pin


def test_rollback_keeps_what_is_pinned_and_later_appends_work(store: Store) -> None:
    pinned = store.append("r1", store.create("r1", COLUMNS), 1, weighted_rows(A))
    beyond = store.append("r1", pinned, 2, weighted_rows(B))
    store.append("r1", beyond, 3, weighted_rows(C))
    back = store.rollback("r1", pinned)
    assert back == Pin(4, 1)
    assert bag(store.read("r1", back, 0, 1)) == {A: 1}
    again = store.append("r1", back, 2, weighted_rows(C))
    assert again == Pin(5, 2)
    assert bag(store.read("r1", again, 0, 2)) == {A: 1, C: 1}


def test_a_rollback_that_was_not_recorded_is_found_again(store: Store) -> None:
    pinned = store.append("r1", store.create("r1", COLUMNS), 1, weighted_rows(A))
    store.append("r1", pinned, 2, weighted_rows(B))
    first = store.rollback("r1", pinned)
    assert store.rollback("r1", pinned) == first
    assert store.rollback("r1", first) == first


def test_rollback_to_an_epoch_without_rows_keeps_that_epoch(store: Store) -> None:
    pin = store.append("r1", store.create("r1", COLUMNS), 1, weighted_rows(A))
    pin = store.append("r1", pin, 2, weighted_rows())
    store.append("r1", pin, 3, weighted_rows(B))
    assert store.rollback("r1", pin).epoch == 2


def test_creating_again_replaces_what_was_never_pinned(store: Store) -> None:
    store.append("r1", store.create("r1", COLUMNS), 1, weighted_rows(A))
    pin = store.create("r1", pa.schema([("c9", pa.date32())]))
    assert pin == Pin(0, 0)
    assert store.read("r1", pin, 0, 0).schema.names == ["_weight", "c9"]


def test_a_dropped_relation_does_not_reach_its_pin(store: Store) -> None:
    pin = store.append("r1", store.create("r1", COLUMNS), 1, weighted_rows(A))
    store.drop("r1")
    store.drop("r1")
    for act in (store.files, store.read):
        with pytest.raises(NeedsReinit) as error:
            act("r1", pin, 0, 1)
        assert error.value.code == "store-behind"
    with pytest.raises(NeedsReinit):
        store.rollback("r1", pin)


def test_relations_are_apart(store: Store) -> None:
    one = store.append("r1", store.create("r1", COLUMNS), 1, weighted_rows(A))
    two = store.append("r2", store.create("r2", COLUMNS), 1, weighted_rows(B))
    store.drop("r2")
    assert bag(store.read("r1", one, 0, 1)) == {A: 1}
    assert two == Pin(1, 1)


def test_a_relation_without_columns_holds_weights(store: Store) -> None:
    pin = store.create("r1", pa.schema([]))
    pin = store.append("r1", pin, 1, pa.table({"_weight": pa.array([2, -1], pa.int64())}))
    assert store.read("r1", pin, 0, 1).to_pydict() == {"_weight": [2, -1]}


def test_columns_may_come_in_any_order(store: Store) -> None:
    rows = weighted_rows(A).select(["c2", "_weight", "c1"])
    pin = store.append("r1", store.create("r1", COLUMNS), 1, rows)
    assert bag(store.read("r1", pin, 0, 1)) == {A: 1}


@pytest.mark.parametrize(
    "rows",
    [
        pa.table({"_weight": [1], "c1": [1]}),
        pa.table({"_weight": [1], "c1": [1], "c2": ["a"], "c3": [1]}),
        pa.table({"_weight": [1], "c1": ["1"], "c2": ["a"]}),
        pa.table({"_weight": pa.array([None], pa.int64()), "c1": [1], "c2": ["a"]}),
        pa.table({"_weight": [1], "_epoch": [1], "c1": [1], "c2": ["a"]}),
    ],
    ids=["missing", "additional", "type", "weight", "epoch"],
)
def test_rows_of_another_shape_are_refused(store: Store, rows: pa.Table) -> None:
    pin = store.create("r1", COLUMNS)
    with pytest.raises(InternalError):
        store.append("r1", pin, 1, rows)
    assert store.rollback("r1", pin) == pin


@pytest.mark.parametrize(
    "columns",
    [
        pa.schema([("_x", pa.int64())]),
        pa.schema([("c1", pa.int64()), ("C1", pa.int64())]),
        pa.schema([("c1", pa.timestamp("ns"))]),
        pa.schema([("c1", pa.timestamp("us", "Europe/Berlin"))]),
        pa.schema([("c1", pa.list_(pa.list_(pa.int64())))]),
    ],
    ids=["reserved", "twice", "nanoseconds", "zone", "nested"],
)
def test_columns_that_would_not_come_back_are_refused(store: Store, columns: pa.Schema) -> None:
    with pytest.raises(InternalError):
        store.create("r1", columns)


def test_files_tell_whether_rows_of_theirs_take_others_away(store: Store) -> None:
    def only_adds(after: int, upto: int) -> list[bool]:
        return [file.only_adds for file in store.files("r1", pin, after, upto)]

    pin = store.create("r1", COLUMNS)
    for epoch, rows in enumerate(((A, B), (B, C), (A,)), 1):
        pin = store.append("r1", pin, epoch, weighted_rows(*rows))
    assert only_adds(0, 3) == [True, False, True]
    pin = store.compact("r1", pin, store.files("r1", pin, 0, 2))
    assert only_adds(0, 2) == [True], "what went was there before"
    pin = store.append("r1", pin, 4, weighted_rows(C, C))
    pin = store.compact("r1", pin, store.files("r1", pin, 2, 4))
    assert only_adds(2, 4) == [False]


def test_a_sum_is_written_beside_the_log_and_put_in_place_later(store: Store) -> None:
    pin = store.create("r1", COLUMNS)
    for epoch, rows in enumerate(((A, B), (B, C), (A,)), 1):
        pin = store.append("r1", pin, epoch, weighted_rows(*rows))
    begun, chosen = store.log("r1", pin), store.files("r1", pin, 0, 2)
    pin = store.append("r1", pin, 4, weighted_rows(C, C))
    before = bag(net(store.read("r1", pin, 0, 4)))
    folder = store.new_folder("r1", 2)
    store.write_merged("r1", begun, chosen, folder)
    assert len(store.files("r1", pin, 0, 4)) == 4, "the log is as it was"
    counted = store.rows_in(begun, 2, folder)
    assert counted == net(store.read("r1", pin, 0, 2)).num_rows
    with pytest.raises(InternalError):
        store.replace("r1", pin, chosen, folder, counted + 1)
    folder = store.new_folder("r1", 2)
    store.write_merged("r1", begun, chosen, folder)
    store.discard(folder)
    store.discard(folder)
    with pytest.raises((Unavailable, InternalError)):
        store.replace("r1", pin, chosen, folder, counted)
    folder = store.new_folder("r1", 2)
    store.write_merged("r1", begun, chosen, folder)
    pin = store.replace("r1", pin, chosen, folder, counted)
    assert [(f.first_epoch, f.last_epoch) for f in store.files("r1", pin, 0, 4)] == [
        (1, 2),
        (3, 3),
        (4, 4),
    ]
    assert bag(net(store.read("r1", pin, 0, 4))) == before


def test_a_sum_without_rows_is_one_all_the_same(store: Store) -> None:
    pin = store.create("r1", COLUMNS)
    for epoch, weight in ((1, 1), (2, -1)):
        pin = store.append("r1", pin, epoch, weighted_rows((weight, 1, "a")))
    chosen, folder = store.files("r1", pin, 0, 2), store.new_folder("r1", 2)
    log = store.log("r1", pin)
    store.write_merged("r1", log, chosen, folder)
    assert store.rows_in(log, 2, folder) == 0
    pin = store.replace("r1", pin, chosen, folder, 0)
    (file,) = store.files("r1", pin, 0, 2)
    assert (file.first_epoch, file.last_epoch, file.rows) == (1, 2, 0)
