"""Events with keys for old rows add up to the same as a replay of them, row by row."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.capture.wal.decoder import Decoder
from headrace.capture.wal.protocol import RelationColumn, RelationMessage
from headrace.capture.wal.value_decoders import IS_KEY, POSITION, event_schema, events_of, unsent
from headrace.errors import NeedsReinit
from headrace.ingest.keyed import changes_by_key, touched_keys
from headrace.source.table import SourceColumn, SourceTable
from headrace.types import INTEGER, TEXT
from tests.capture.wal import encoder
from tests.capture.wal.encoder import UNCHANGED
from tests.capture.wal.log import bag

OID = 16400
COLUMNS = (
    SourceColumn(1, "a", "integer", INTEGER),
    SourceColumn(2, "x", "text", TEXT),
    SourceColumn(3, "b", "text", TEXT),
    SourceColumn(5, "y", "text", TEXT),
)
TABLE = SourceTable(OID, "public", "t", COLUMNS)
KEY, NAMES = ("c1", "c3"), ("c1", "c2", "c3", "c5")
RELATION = RelationMessage(
    OID,
    "public",
    "t",
    "d",
    tuple(RelationColumn(c.name, 0, -1, c.number in (1, 3)) for c in COLUMNS),
)

Key = tuple[int, str]
Values = tuple[str | None, str | None]
State = dict[Key, Values]

keys = st.tuples(st.integers(0, 2), st.sampled_from("pq"))
values = st.tuples(st.none() | st.sampled_from("uvw"), st.none() | st.sampled_from("uvw"))
states = st.dictionaries(keys, values, max_size=6)


def rows_of(state: State) -> pa.Table:
    rows = [(a, x, b, y) for (a, b), (x, y) in state.items()]
    kinds = (pa.int32(), pa.string(), pa.string(), pa.string())
    columns = {
        name: pa.array([row[place] for row in rows], kind)
        for place, (name, kind) in enumerate(zip(NAMES, kinds, strict=True))
    }
    return pa.table({"_weight": pa.array([1] * len(rows), pa.int64()), **columns})


def added(before: pa.Table, changes: pa.Table) -> Counter[tuple[Any, ...]]:
    return bag(pa.concat_tables([before, changes]))


# What an application does to a table: a key, another key, new values, which of them to send.
operations = st.lists(
    st.tuples(
        st.sampled_from(["insert", "update", "move", "delete"]),
        keys,
        keys,
        values,
        st.tuples(st.booleans(), st.booleans(), st.booleans()),
    ),
    max_size=30,
)


@given(states, operations, st.lists(st.integers(0, 40), max_size=3))
def test_messages_of_a_table_lead_to_the_table(
    before: State, done: list[tuple[Any, ...]], cuts: list[int]
) -> None:
    """Whatever is done and however it is sent, rows before and changes are the rows after."""
    after = dict(before)
    messages = [encoder.relation(RELATION), encoder.begin(7, 100)]
    for kind, key, other, new, sent in done:
        message = _done(after, kind, key, other, new, sent)
        if message is not None:
            messages.append(message)
    messages.append(encoder.commit(100, 110))
    places = sorted({min(cut, len(messages)) for cut in cuts} | {0, len(messages)})
    decoder = Decoder()
    events = [event_schema(COLUMNS).empty_table()]
    for start, end in pairwise(places):
        for images in decoder.feed(encoder.batch(*messages[start:end])).images:
            events.append(events_of(images, TABLE, (1, 3)))
            assert events[-1].schema == events[0].schema
    together = pa.concat_tables(events)
    touched = touched_keys(together, KEY).matching(rows_of(before))
    changes = changes_by_key(together, touched, KEY, NAMES)
    assert changes.column_names == ["_weight", *NAMES]
    assert added(rows_of(before), changes) == bag(rows_of(after))
    # Nothing that cancels out is left.
    assert sum(bag(changes).values()) == len(after) - len(before)
    assert changes.num_rows == len(bag(changes))


def _done(
    state: State, kind: str, key: Key, other: Key, new: Values, sent: tuple[bool, bool, bool]
) -> bytes | None:
    """Do it, and what the log says of it; None where it is impossible."""
    a, b = str(key[0]), key[1]
    if kind == "insert" and key not in state:
        state[key] = new
        return encoder.insert(OID, (a, new[0], b, new[1]))
    if key not in state:
        return None
    was = state[key]
    old = (a, None, b, None)
    if kind == "delete":
        del state[key]
        return encoder.delete(OID, old, b"K")
    if kind == "update":
        other = key
    elif kind != "move" or other in state:
        return None
    del state[key]
    state[other] = new
    # Values that are as before may be left out; a key's only if the old key is sent.
    x, y = (
        UNCHANGED if value is not None and value == before and not send else value
        for value, before, send in zip(new, was, sent, strict=False)
    )
    sends_old = other != key or not sent[2]
    left_out = other[1] == b and not sent[2]
    row = (str(other[0]), x, UNCHANGED if left_out else other[1], y)
    return encoder.update(OID, row, old if sends_old else None, b"K")


@dataclass(frozen=True)
class Event:
    """A new row, or with `old` alone a deletion; `gaps` are values that were not sent."""

    old: Key | None = None
    new: Key | None = None
    values: Values = (None, None)
    gaps: tuple[bool, bool] = (False, False)


class Lost(Exception):
    """The events do not continue what was before."""


def replayed(state: State, events: list[Event]) -> State:
    """The slow reference: one event after another."""
    state = dict(state)
    for event in events:
        was = None
        if event.old is not None:
            if event.old not in state:
                raise Lost
            was = state.pop(event.old)
            if event.new in state:
                raise Lost
        elif event.new is not None:
            was = state.get(event.new)
        if event.new is not None:
            if was is None and any(event.gaps):
                raise Lost
            x, y = (
                before if gap else value
                for value, before, gap in zip(
                    event.values, was or (None, None), event.gaps, strict=True
                )
            )
            state[event.new] = (x, y)
    return state


def table_of(events: list[Event]) -> pa.Table:
    rows: list[dict[str, Any]] = []
    for number, event in enumerate(events):
        nothing = dict.fromkeys(map(unsent, NAMES), False)
        if event.old is not None:
            old = {POSITION: 2 * number, IS_KEY: True, "c1": event.old[0], "c3": event.old[1]}
            rows.append(nothing | old)
        if event.new is not None:
            new = {POSITION: 2 * number + 1, IS_KEY: False, "c1": event.new[0], "c3": event.new[1]}
            for name, value, gap in zip(("c2", "c5"), event.values, event.gaps, strict=True):
                new[name], new[unsent(name)] = (None if gap else value), gap
            rows.append(nothing | new)
    return pa.Table.from_pylist(rows, event_schema(COLUMNS))


gaps = st.tuples(st.booleans(), st.booleans())
any_events = st.lists(
    st.one_of(
        st.builds(Event, old=keys),
        st.builds(Event, new=keys, values=values),
        st.builds(Event, new=keys, values=values, gaps=gaps),
        st.builds(Event, old=keys, new=keys, values=values, gaps=gaps),
    ),
    max_size=12,
)
ONE, TWO, THREE = (0, "p"), (0, "q"), (1, "p")


@given(states, any_events, st.randoms(use_true_random=False))
@example({ONE: ("u", "v")}, [Event(ONE, TWO, gaps=(True, False)), Event(new=ONE)], None)
@example(
    # Two rows change places through a third key, and each keeps what was not sent.
    {ONE: ("u", "v"), TWO: ("w", None)},
    [
        Event(ONE, THREE, gaps=(True, True)),
        Event(TWO, ONE, gaps=(True, True)),
        Event(THREE, TWO, gaps=(True, True)),
    ],
    None,
)
@example({ONE: ("u", "v")}, [Event(ONE), Event(new=ONE, gaps=(True, False))], None)
@example({}, [Event(new=ONE, values=("u", "v"))] + [Event(new=ONE, gaps=(True, True))] * 9, None)
def test_the_same_as_a_replay(before: State, events: list[Event], chance: Any) -> None:
    """Also for events that no server sends: both find that continuity is lost."""
    table = table_of(events)
    if chance is not None:
        order = list(range(table.num_rows))
        chance.shuffle(order)
        table = table.take(pa.array(order, pa.int64()))
    rows = rows_of(before)
    try:
        after = replayed(before, events)
    except Lost:
        with pytest.raises(NeedsReinit) as refused:
            changes_by_key(table, rows, KEY, NAMES)
        assert refused.value.code == "wal-not-decodable"
        return
    changes = changes_by_key(table, rows, KEY, NAMES)
    assert added(rows, changes) == bag(rows_of(after))
    assert changes.num_rows == len(bag(changes))


@pytest.mark.parametrize(
    ("events", "detail"),
    [
        (
            [Event(old=TWO)],
            "A row with the key (0, q) was changed or deleted and was not there.",
        ),
        (
            [Event(old=ONE), Event(ONE, TWO)],
            "A row with the key (0, p) was changed or deleted and was not there.",
        ),
        ([Event(THREE, ONE)], "A row was given the key (0, p) of another row."),
        (
            [Event(new=TWO, gaps=(False, True))],
            "A row with the key (0, q) came without a value that no row before has.",
        ),
    ],
)
def test_what_is_said_of_lost_continuity(events: list[Event], detail: str) -> None:
    before = rows_of({ONE: ("u", "v"), THREE: ("u", "v")})
    with pytest.raises(NeedsReinit) as refused:
        changes_by_key(table_of(events), before, KEY, NAMES)
    assert (refused.value.code, refused.value.detail) == ("wal-not-decodable", detail)


def test_rows_before_are_there_once() -> None:
    events, row = table_of([Event(old=ONE)]), rows_of({ONE: ("u", "v")})
    other = rows_of({ONE: ("u", "w")})
    with pytest.raises(NeedsReinit) as refused:
        changes_by_key(events, pa.concat_tables([row, other]), KEY, NAMES)
    assert refused.value.detail == "Two rows had the key (0, p)."
    twice = row.set_column(0, "_weight", pa.array([2], pa.int64()))
    with pytest.raises(NeedsReinit) as refused:
        changes_by_key(events, twice, KEY, NAMES)
    assert refused.value.detail == "A row of a table with a key was there more than once."


def test_a_key_that_was_sent_by_no_one() -> None:
    (images,) = (
        Decoder()
        .feed(
            encoder.batch(
                encoder.relation(RELATION),
                encoder.begin(7, 100),
                encoder.update(OID, ("1", "u", UNCHANGED, "v")),
            )
        )
        .images
    )
    with pytest.raises(NeedsReinit) as refused:
        changes_by_key(events_of(images, TABLE, (1, 3)), rows_of({}), KEY, NAMES)
    assert refused.value.detail == "A row came without its key."


def test_another_identity_in_the_log_is_refused() -> None:
    messages = encoder.batch(
        encoder.relation(RELATION), encoder.begin(7, 100), encoder.insert(OID, ("1", "", "p", ""))
    )
    (images,) = Decoder().feed(messages).images
    with pytest.raises(NeedsReinit) as refused:
        events_of(images, TABLE, (1,))
    assert refused.value.detail == "Rows of public.t have another replica identity in the WAL."


def test_a_row_that_is_changed_very_often() -> None:
    """Its unsent value is found in the first of its events, in few rounds."""
    count = 200_000
    events = table_of([Event(new=ONE, values=("first", "v"))]).take([0] * count)
    gap = np.arange(count) > 0
    for name, values in (
        (POSITION, pa.array(2 * np.arange(count) + 1)),
        (unsent("c2"), pa.array(gap)),
        ("c2", pa.array(["first"] + [None] * (count - 1), pa.string())),
        ("c5", pa.array([f"v{n}" for n in range(count)])),
    ):
        place = events.schema.get_field_index(name)
        events = events.set_column(place, events.schema.field(place), values)
    changes = changes_by_key(events, rows_of({}), KEY, NAMES)
    assert changes.to_pylist() == [
        {"_weight": 1, "c1": 0, "c2": "first", "c3": "p", "c5": f"v{count - 1}"}
    ]
