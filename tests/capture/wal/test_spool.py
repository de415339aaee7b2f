"""The spool: handed out whole and again, described again after a trim, in bounded memory."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from headrace.capture.wal.decoder import Decoder
from headrace.capture.wal.protocol import (
    RelationColumn,
    RelationMessage,
    parse_keepalive,
    start,
    status,
)
from headrace.capture.wal.spill import Spill
from headrace.capture.wal.spool import Spool
from headrace.capture.wal.visibility import Committed
from headrace.errors import NeedsReinit
from tests.capture.wal.encoder import begin, commit, insert, relation

T = RelationMessage(1, "public", "t", "f", (RelationColumn("a", 25, -1),))
WIDER = RelationMessage(1, "public", "t", "f", (*T.columns, RelationColumn("b", 25, -1)))


def transaction(number: int, *changes: bytes) -> list[bytes]:
    """One that has the id `number` and ends at ten times that."""
    return [begin(number, 10 * number - 1), *changes, commit(10 * number - 1, 10 * number)]


def fill(spool: Spool, *messages: bytes) -> list[int]:
    """Where the transactions end that become whole."""
    return [end for message in messages if (end := spool.extend([message]))]


def handed_out(spool: Spool, upto: int) -> list[bytes]:
    return [message for batch in spool.messages(upto) for message in batch.to_pylist()]


def texts(spool: Spool, upto: int) -> list[tuple[str, ...]]:
    """The new rows, by a decoder of its own."""
    decoder, found = Decoder(), []
    for batch in spool.messages(upto):
        for images in decoder.feed(batch).images:
            columns = [images.values[column.name].to_pylist() for column in images.relation.columns]
            found += [tuple(value.decode() for value in row) for row in zip(*columns, strict=True)]
    return found


def test_whole_transactions_in_order() -> None:
    spool = Spool()
    one = transaction(1, relation(T), insert(1, ["x"]))
    two = transaction(2, insert(1, ["y"]))
    assert fill(spool, *one, *two[:-1]) == [10]
    assert handed_out(spool, 100) == one, "the second has not ended"
    assert fill(spool, two[-1]) == [20]
    assert spool.transactions(100) == (Committed(1, 10), Committed(2, 20))
    assert spool.transactions(100, 1) == spool.transactions(19) == (Committed(1, 10),)
    assert handed_out(spool, 9) == [] == list(spool.transactions(9))
    assert handed_out(spool, 10) == one
    assert handed_out(spool, 20) == handed_out(spool, 20) == one + two


def test_a_commit_across_a_position() -> None:
    """The spool hands it out as soon as it begins, and releases it when it ends."""
    spool = Spool()
    one = [begin(1, 50), relation(T), insert(1, ["x"]), commit(50, 90)]
    fill(spool, *one)
    assert (handed_out(spool, 50), spool.transactions(50)) == ([], ())
    for upto in (51, 89, 90):
        assert (handed_out(spool, upto), spool.transactions(upto)) == (one, (Committed(1, 90),))
    spool.trim(89)
    assert handed_out(spool, 100) == one
    spool.trim(90)
    assert handed_out(spool, 100) == []


def test_descriptions_outlive_a_trim() -> None:
    spool = Spool()
    fill(spool, *transaction(1, relation(T), insert(1, ["x"])), *transaction(2, insert(1, ["y"])))
    spool.trim(10)
    assert spool.transactions(100) == (Committed(2, 20),)
    assert texts(spool, 100) == [("y",)]
    fill(spool, *transaction(3, relation(WIDER), insert(1, ["z", "zz"])))
    assert texts(spool, 100) == [("y",), ("z", "zz")]
    spool.trim(25)
    assert texts(spool, 100) == [("z", "zz")]
    spool.trim(30)
    assert spool.size == 0
    assert texts(spool, 100) == []
    fill(spool, *transaction(4, insert(1, ["v", "vv"])))
    assert texts(spool, 100) == [("v", "vv")], "the last description counts"


def test_trimmed_transactions_may_arrive_again() -> None:
    """As after a server that crashed: it sends again from where its slot stood."""
    spool = Spool()
    spool.trim(20)
    fill(spool, *transaction(1, relation(T), insert(1, ["x"])))
    fill(spool, *transaction(2, insert(1, ["y"])), *transaction(3, insert(1, ["z"])))
    assert spool.transactions(100) == (Committed(3, 30),)
    assert texts(spool, 100) == [("z",)]


def test_a_transaction_that_is_arriving_is_kept() -> None:
    spool = Spool(segment_bytes=64, memory_bytes=128)
    fill(spool, *transaction(1, relation(T)))
    fill(spool, begin(2, 19), *(insert(1, [f"{n:09}"]) for n in range(50)))
    spool.trim(10)
    fill(spool, commit(19, 20))
    assert texts(spool, 100) == [(f"{n:09}",) for n in range(50)]
    assert spool.on_disk > 0
    spool.close()


@pytest.mark.parametrize("seed", range(8))
def test_memory_and_disk_hold_the_same(seed: int) -> None:
    """Any sequence of arrivals, reads and trims, against one that keeps all in a list."""
    chance = random.Random(seed)
    small, plain = Spool(segment_bytes=200, memory_bytes=600), Spool()
    small._spill = Spill(file_bytes=1000)
    spilled, number = 0, 1
    fill(small, *transaction(1, relation(T)))
    fill(plain, *transaction(1, relation(T)))
    for _ in range(300):
        if chance.random() < 0.7:
            number += 1
            rows = [insert(1, ["x" * chance.randrange(60)]) for _ in range(chance.randrange(6))]
            changes = [relation(T), *rows] if chance.random() < 0.05 else rows
            for spool in (small, plain):
                fill(spool, *transaction(number, *changes))
        elif chance.random() < 0.5:
            position = 10 * max(0, number - chance.randrange(30))
            small.trim(position)
            plain.trim(position)
        else:
            upto = 10 * max(0, number - chance.randrange(3))
            assert handed_out(small, upto) == handed_out(plain, upto)
            assert small.transactions(upto) == plain.transactions(upto)
        assert small.in_memory <= 600
        spilled = max(spilled, small.on_disk)
    assert spilled > 1000
    small.trim(10 * number)
    assert (small.size, small.on_disk, small._spill.files) == (0, 0, 0), "the disk is given back"
    small.close()
    plain.close()


def test_batches_are_small() -> None:
    spool = Spool(segment_bytes=1000)
    fill(spool, *transaction(1, relation(T), *(insert(1, ["x" * 90]) for _ in range(100))))
    batches = list(spool.messages(100))
    assert all(batch.type == pa.binary() and batch.nbytes < 3000 for batch in batches)
    assert len(batches) > 5


def test_frames() -> None:
    assert start('a"b', "p") == (
        b'START_REPLICATION SLOT "a""b" LOGICAL 0/0'
        b" (proto_version '1', publication_names '\"p\"')"
    )
    assert len(status(5, 3, asks=True, at=1.5)) == 34
    assert int.from_bytes(status(5, at=946684801.5)[25:33], "big") == 1_500_000
    assert status(5, at=0)[9:17] == bytes(8), "nothing is flushed unless requested"
    asks = parse_keepalive(b"k" + (77).to_bytes(8, "big") + bytes(8) + b"\1")
    assert (asks.position, asks.asks) == (77, True)
    for odd in (b"k1", b"x" + bytes(17)):
        with pytest.raises(NeedsReinit) as refused:
            parse_keepalive(odd)
        assert refused.value.code == "wal-not-decodable"


def test_an_end_without_a_beginning() -> None:
    with pytest.raises(NeedsReinit) as refused:
        Spool().extend([commit(9, 10)])
    assert refused.value.code == "wal-not-decodable"


def test_messages_arrive_together_or_alone() -> None:
    """Some of them are released before they arrive."""
    one, two, three = (transaction(n, relation(T), insert(1, [f"{n}"])) for n in (1, 2, 3))
    spool = Spool()
    spool.trim(20)
    assert spool.extend([*one, *two, *three[:-1]]) == 20
    assert spool.extend([]) == 0
    assert spool.extend(three[-1:]) == 30
    assert texts(spool, 100) == [("3",)]
