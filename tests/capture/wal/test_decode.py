"""Messages made by hand, decoded: what comes out, whatever way they were cut into batches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.capture.wal.decoder import Decoded, Decoder, Images, Open
from headrace.capture.wal.protocol import RelationColumn, RelationMessage, parse_relation
from headrace.errors import NeedsReinit
from tests.capture.wal import encoder
from tests.capture.wal.encoder import UNCHANGED, begin, commit, delete, insert, relation, update

FULL = RelationMessage(
    7, "s", 't"', "f", (RelationColumn("a", 25, -1, True), RelationColumn("b", 1043, 9, True))
)
KEYED = RelationMessage(
    8, "s", "k", "d", (RelationColumn("a", 25, -1, True), RelationColumn("b", 25, -1))
)
EMPTY = RelationMessage(9, "pg_catalog", "e", "f", ())


@dataclass(frozen=True)
class Row:
    """One image as the messages' makers see it."""

    position: int
    transaction: int
    xid: int
    relation: RelationMessage
    image: str
    values: tuple[Any, ...]


def rows(images: Images) -> list[Row]:
    made = []
    for n in range(len(images)):
        values: list[Any] = []
        for column in images.relation.columns:
            value = images.values[column.name][n].as_py()
            if column.name in images.unchanged and images.unchanged[column.name][n]:
                assert value is None
                value = UNCHANGED
            values.append(value)
        numbers = int(images.position[n]), int(images.transaction[n]), int(images.xid[n])
        made.append(Row(*numbers, images.relation, images.image, tuple(values)))
    return made


def all_rows(*decoded: Decoded) -> list[Row]:
    found = [row for each in decoded for images in each.images for row in rows(images)]
    return sorted(found, key=lambda row: row.position)


def feed(*messages: bytes) -> Decoded:
    return Decoder().feed(encoder.batch(*messages))


def test_a_transaction() -> None:
    decoded = feed(
        begin(500, 70),
        relation(FULL),
        insert(7, ["x", None]),
        update(7, ["y", ""], ["x", None]),
        delete(7, ["y", ""]),
        commit(70, 80),
    )
    assert all_rows(decoded) == [
        Row(5, 0, 500, FULL, "new", (b"x", None)),
        Row(6, 0, 500, FULL, "old", (b"x", None)),
        Row(7, 0, 500, FULL, "new", (b"y", b"")),
        Row(8, 0, 500, FULL, "old", (b"y", b"")),
    ]
    assert decoded.open is None
    ended = decoded.ended
    assert (ended.number.tolist(), ended.xid.tolist()) == ([0], [500])
    assert (ended.commit_lsn.tolist(), ended.end_lsn.tolist()) == ([70], [80])
    assert [len(images) for images in decoded.images] == [2, 2]


def test_a_transaction_over_several_batches() -> None:
    decoder = Decoder()
    first = decoder.feed(encoder.batch(begin(1, 10), commit(10, 11), begin(4294967295, 70)))
    assert first.ended.xid.tolist() == [1]
    assert first.open == Open(1, 4294967295, 70)
    second = decoder.feed(encoder.batch(relation(FULL), insert(7, ["x", None])))
    assert len(second.ended) == 0
    assert second.open == first.open
    third = decoder.feed(
        encoder.batch(insert(7, ["y", None]), commit(70, 80), begin(3, 90), insert(7, ["z", "w"]))
    )
    assert third.open == Open(2, 3, 90)
    assert (third.ended.number.tolist(), third.ended.end_lsn.tolist()) == ([1], [80])
    assert all_rows(second, third) == [
        Row(9, 1, 4294967295, FULL, "new", (b"x", None)),
        Row(11, 1, 4294967295, FULL, "new", (b"y", None)),
        Row(17, 2, 3, FULL, "new", (b"z", b"w")),
    ]


def test_nothing_is_nothing() -> None:
    decoder = Decoder()
    decoder.feed(encoder.batch(begin(1, 10)))
    decoded = decoder.feed(encoder.batch())
    assert (len(decoded.ended), decoded.open, decoded.images) == (0, Open(0, 1, 10), ())


def test_old_keys() -> None:
    decoded = feed(
        begin(5, 1),
        relation(KEYED),
        update(8, ["1", "x"]),
        update(8, ["2", UNCHANGED], ["1", None], b"K"),
        delete(8, ["2", None], b"K"),
    )
    assert [(row.position, row.image, row.values) for row in all_rows(decoded)] == [
        (5, "new", (b"1", b"x")),
        (6, "key", (b"1", None)),
        (7, "new", (b"2", UNCHANGED)),
        (8, "key", (b"2", None)),
    ]
    assert [list(images.unchanged) for images in decoded.images] == [[], ["b"]]


def test_an_unchanged_value_is_in_the_old_row() -> None:
    decoded = feed(
        begin(5, 1),
        relation(FULL),
        update(7, ["1", UNCHANGED], ["0", "long"]),
        update(7, [UNCHANGED, "x"], ["k", None]),
        insert(7, ["2", "y"]),
        update(7, ["3", UNCHANGED], ["0", None]),
    )
    new = [images for images in decoded.images if images.image == "new"]
    assert [row.values for row in rows(new[0])] == [
        (b"1", b"long"),
        (b"k", b"x"),
        (b"2", b"y"),
        (b"3", None),
    ]
    assert all(images.unchanged == {} for images in decoded.images)


def test_relations_that_change_and_that_interleave() -> None:
    altered = replace(FULL, columns=FULL.columns[:1])
    decoder = Decoder()
    first = decoder.feed(
        encoder.batch(
            begin(5, 1),
            relation(FULL),
            relation(KEYED),
            insert(7, ["1", "x"]),
            insert(8, ["2", "y"]),
            relation(FULL),
            insert(7, ["3", "z"]),
            relation(altered),
            insert(7, ["4"]),
            insert(8, ["5", "w"]),
        )
    )
    # Said again without a difference, it is the same relation.
    assert [(images.relation, len(images)) for images in first.images] == [
        (FULL, 2),
        (altered, 1),
        (KEYED, 2),
    ]
    second = decoder.feed(encoder.batch(insert(7, ["6"]), relation(FULL), insert(7, ["7", None])))
    assert [(row.relation, row.values) for row in all_rows(second)] == [
        (altered, (b"6",)),
        (FULL, (b"7", None)),
    ]


def test_relations_that_nobody_asked_for() -> None:
    decoder = Decoder([8])
    messages = begin(5, 1), relation(FULL), relation(KEYED), insert(7, ["1", "x"])
    assert decoder.feed(encoder.batch(*messages)).images == ()
    assert len(decoder.feed(encoder.batch(insert(8, ["1", "x"]))).images) == 1


def test_a_table_without_columns() -> None:
    assert parse_relation(relation(EMPTY)) == EMPTY
    decoded = feed(begin(5, 1), relation(EMPTY), insert(9, []), insert(9, []), delete(9, []))
    assert [(images.image, len(images)) for images in decoded.images] == [("old", 1), ("new", 2)]


def test_messages_that_say_nothing_of_rows() -> None:
    decoded = feed(b"O12345678x\0", begin(5, 1), b"Y1234s\0t\0", b"T", b"M", commit(1, 2))
    assert decoded.images == ()
    assert decoded.ended.xid.tolist() == [5]


def test_some_of_the_rows() -> None:
    start = begin(5, 1), relation(KEYED)
    made = [update(8, [str(n), UNCHANGED if n == 3 else "x"]) for n in range(4)]
    (images,) = feed(*start, *made).images
    first = images.where(images.position < 9)
    assert [row.values for row in rows(first)] == [(b"0", b"x"), (b"1", b"x")]
    assert first.unchanged == {}
    last = images.where(images.position >= 9)
    assert [row.values for row in rows(last)] == [(b"2", b"x"), (b"3", UNCHANGED)]
    assert last.unchanged["b"].tolist() == [False, True]


START = (begin(5, 1), relation(FULL), relation(KEYED))
GOOD = insert(7, ["a", "b"])
INVALID: dict[str, tuple[bytes, ...]] = {
    "a change before any begin": (relation(FULL), GOOD),
    "a change after the commit": (*START, commit(1, 2), GOOD),
    "two begins": (begin(5, 1), begin(6, 2)),
    "a commit alone": (commit(1, 2),),
    "two commits": (begin(5, 1), commit(1, 2), commit(3, 4)),
    "another commit position": (begin(5, 1), commit(2, 3)),
    "a short begin": (begin(5, 1)[:-1],),
    "a long commit": (begin(5, 1), commit(1, 2) + b"\0"),
    "a relation nobody described": (begin(5, 1), GOOD),
    "described too late": (begin(5, 1), GOOD, relation(FULL)),
    "an empty message": (begin(5, 1), b""),
    "an unknown message": (b"S\0\0\0\1\0",),
    "half a relation": (begin(5, 1), relation(FULL)[:-3]),
    "a relation and more": (begin(5, 1), relation(FULL) + b"x"),
    "a relation without an end of its name": (begin(5, 1), b"R\0\0\0\7abc"),
    "a name that is not UTF-8": (begin(5, 1), relation(FULL).replace(b"t", b"\xff")),
    "nothing after the relation": (*START, GOOD[:5]),
    "half an oid": (*START, GOOD[:3]),
    "no row": (*START, GOOD[:6]),
    "half a number of columns": (*START, GOOD[:7]),
    "too few columns": (*START, insert(7, ["a"])),
    "too many columns": (*START, insert(7, ["a", "b", "c"])),
    "a row that ends early": (*START, GOOD[:-1]),
    "a row without its last length": (*START, GOOD[:-4]),
    "a row without its last column": (*START, GOOD[:-6]),
    "a row and more": (*START, GOOD + b"x"),
    "a delete and more": (*START, delete(7, ["a", "b"]) + b"x"),
    "an update that has no new row": (*START, b"U" + delete(7, ["a", "b"])[1:]),
    "a delete of a new row": (*START, b"D" + GOOD[1:]),
    "an insert of an old row": (*START, b"I" + delete(7, ["a", "b"])[1:]),
    "a binary value": (*START, GOOD.replace(b"t", b"b")),
    "an insert with a gap": (*START, insert(7, ["a", UNCHANGED])),
    "an old row with a gap": (*START, delete(7, ["a", UNCHANGED])),
    "a key where the row should be": (*START, delete(7, ["a", None], b"K")),
    "a row where the key should be": (*START, delete(8, ["a", "b"])),
    "no old row of full identity": (*START, update(7, ["a", "b"])),
    "a length beyond the end": (*START, GOOD.replace(b"\0\0\0\1a", b"\x7f\xff\xff\xffa")),
    "a length below zero": (*START, GOOD.replace(b"\0\0\0\1a", b"\xff\xff\xff\xffa")),
}


@pytest.mark.parametrize("messages", INVALID.values(), ids=INVALID)
def test_invalid_messages_are_reported(messages: tuple[bytes, ...]) -> None:
    with pytest.raises(NeedsReinit) as refused:
        feed(*messages)
    assert refused.value.code == "wal-not-decodable"
    assert refused.value.detail


@pytest.mark.parametrize(
    "messages", [pa.array([None], pa.binary()), pa.array(["B"]), pa.array([1])], ids=str
)
def test_invalid_arrays_of_messages_are_reported(messages: pa.Array) -> None:
    with pytest.raises(NeedsReinit):
        Decoder().feed(messages)


@given(st.data())
def test_any_bytes_are_decoded_or_refused(data: st.DataObject) -> None:
    """A byte changed anywhere never leads to another error."""
    good = [*START, GOOD, update(7, ["x", UNCHANGED], ["a", None]), update(8, ["1", None])]
    at = data.draw(st.integers(0, len(good) - 1))
    message = bytearray(good[at])
    message[data.draw(st.integers(0, len(message) - 1))] = data.draw(st.integers(0, 255))
    good[at] = bytes(message)
    code, count = None, 0
    try:
        count = sum(map(len, feed(*good).images))
    except NeedsReinit as refused:
        code = refused.code
    assert (code, count) == ("wal-not-decodable", 0) or (code is None and count <= 4)


VALUES = st.none() | st.binary(max_size=30)


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[bytes], list[Row]]:
    """A stream of whole transactions, and the rows that are in it."""
    messages: list[bytes] = []
    expected: list[Row] = []
    described: dict[int, RelationMessage] = {}
    for number in range(draw(st.integers(0, 4))):
        xid, lsn = draw(st.integers(3, 2**32 - 1)), draw(st.integers(0, 2**62))
        messages.append(begin(xid, lsn))
        for _ in range(draw(st.integers(0, 6))):
            chosen = draw(st.sampled_from([FULL, KEYED, EMPTY]))
            if chosen.oid not in described or draw(st.booleans()):
                width = draw(st.integers(0, len(chosen.columns)))
                described[chosen.oid] = replace(chosen, columns=chosen.columns[:width])
                messages.append(relation(described[chosen.oid]))
            made, images = draw(changes(described[chosen.oid]))
            for image, values in images:
                position = 2 * len(messages) + (image == "new")
                expected.append(
                    Row(position, number, xid, described[chosen.oid], image, tuple(values))
                )
            messages.append(made)
        messages.append(commit(lsn, draw(st.integers(0, 2**62))))
    return messages, expected


@st.composite
def changes(
    draw: st.DrawFn, described: RelationMessage
) -> tuple[bytes, list[tuple[str, list[Any]]]]:
    """One change, and its images."""
    width, oid = len(described.columns), described.oid
    new = draw(st.lists(VALUES, min_size=width, max_size=width))
    old = draw(st.lists(VALUES, min_size=width, max_size=width))
    kind = draw(st.sampled_from("IUD"))
    tag, image = (b"O", "old") if described.identity == "f" else (b"K", "key")
    if kind == "I":
        return insert(oid, new), [("new", new)]
    if kind == "D":
        return delete(oid, old, tag), [(image, old)]
    gaps = draw(st.lists(st.booleans(), min_size=width, max_size=width))
    sent = [UNCHANGED if gap else value for gap, value in zip(gaps, new, strict=True)]
    if image == "old":
        seen = [before if gap else value for gap, before, value in zip(gaps, old, new, strict=True)]
        return update(oid, sent, old, tag), [("old", old), ("new", seen)]
    if draw(st.booleans()):
        return update(oid, sent, old, tag), [("key", old), ("new", sent)]
    return update(oid, sent), [("new", sent)]


@given(streams(), st.data())
def test_rows_come_back_however_the_stream_is_cut(
    stream: tuple[list[bytes], list[Row]], data: st.DataObject
) -> None:
    messages, expected = stream
    cuts = sorted(data.draw(st.lists(st.integers(0, len(messages)), max_size=4)))
    whole = encoder.batch(*messages)
    decoder = Decoder()
    decoded = [
        decoder.feed(whole[start:end])
        for start, end in zip([0, *cuts], [*cuts, len(messages)], strict=True)
    ]
    assert all_rows(*decoded) == expected
    assert decoded[-1].open is None
    begins = [message for message in messages if message[0] == ord("B")]
    xids = [int.from_bytes(message[17:], "big") for message in begins]
    assert [xid for each in decoded for xid in each.ended.xid.tolist()] == xids
    numbers = [number for each in decoded for number in each.ended.number.tolist()]
    assert numbers == list(range(len(begins)))
