"""Decoder from the binary messages of a slot to columns of text values, a batch at a time.

    decoder = Decoder()
    for batch in batches:                   # arrays of messages, in the order of the slot
        decoded = decoder.feed(batch)

A decoder belongs to one read of a slot from its confirmed position: only there does PostgreSQL
send every relation before its first change. Only relation messages are parsed one by one.

Transactions come whole, in the order of their commits, never interleaved:

    begin    B, commit LSN, time of commit, xid              21 bytes
    commit   C, flags, commit LSN, end LSN, time of commit   26 bytes

A transaction may begin in one batch and end in a later one: `Open` is carried between batches.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.capture.wal.protocol import (
    BEGIN,
    COMMIT,
    DELETE,
    FULL,
    IGNORED,
    INSERT,
    RELATION,
    UPDATE,
    Image,
    RelationMessage,
    not_decodable,
    parse_relation,
)
from headrace.capture.wal.rows import (
    HEADER_BYTES,
    Mask,
    MessageArray,
    Places,
    Rows,
    find_rows,
    message_array,
)

BEGIN_BYTES, COMMIT_BYTES = 21, 26


@dataclass(frozen=True)
class Open:
    """A transaction whose begin was read and whose commit was not yet."""

    number: int
    xid: int
    commit_lsn: int


@dataclass(frozen=True, eq=False)
class Transactions:
    """Transactions that ended, in the order of the stream; each array has one element for each.

    `number` counts the transactions of the stream from 0. `xid` is the top-level id, in 32 bits.
    Acknowledging `end_lsn` acknowledges the whole transaction.
    """

    number: Places
    xid: Places
    commit_lsn: Places
    end_lsn: Places

    def __len__(self) -> int:
        return len(self.number)


@dataclass(frozen=True, eq=False)
class Membership:
    """The transactions of a batch, and the assignment of messages to them.

    `ended`, then `open`, are all transactions with a message in the batch. `number` and `xid` have
    an element for each, `begun` the index of its begin message (−1: in an earlier batch).
    """

    ended: Transactions
    open: Open | None
    number: Places
    xid: Places
    begun: Places

    def of(self, indexes: Places) -> Places:
        """Return the transactions of messages, as indexes of `number` and `xid`."""
        return np.searchsorted(self.begun, indexes, side="right") - 1


def membership(
    messages: MessageArray, letters: Places, changes: Places, carried: Open | None, following: int
) -> Membership:
    """Return the transactions of a batch; `changes` are the indexes of its change messages.

    `carried` is the transaction still open from the batch before, `following` the number of the
    next transaction to begin.
    """
    begins = np.flatnonzero(letters == BEGIN)
    commits = np.flatnonzero(letters == COMMIT)
    _check_lengths(messages, begins, BEGIN_BYTES)
    _check_lengths(messages, commits, COMMIT_BYTES)
    at = messages.starts[begins]
    commit_lsn, xid = messages.unsigned64(at + 1), messages.unsigned32(at + 17)
    number = np.arange(following, following + len(begins))
    begun = begins
    if carried is not None:
        begun = np.insert(begun, 0, -1)
        number = np.insert(number, 0, carried.number)
        xid = np.insert(xid, 0, carried.xid)
        commit_lsn = np.insert(commit_lsn, 0, carried.commit_lsn)
    _check_order(begun, commits, changes)
    at = messages.starts[commits]
    count = len(commits)
    if (messages.unsigned64(at + 2) != commit_lsn[:count]).any():
        raise not_decodable("A transaction ends at another position than its begin announced.")
    ended = Transactions(
        number[:count], xid[:count], commit_lsn[:count], messages.unsigned64(at + 10)
    )
    left = None
    if len(begun) > count:
        left = Open(int(number[-1]), int(xid[-1]), int(commit_lsn[-1]))
    return Membership(ended, left, number, xid, begun)


def _check_lengths(messages: MessageArray, indexes: Places, length: int) -> None:
    if (messages.ends[indexes] - messages.starts[indexes] != length).any():
        raise not_decodable("A begin or commit message is malformed.")


def _check_order(begun: Places, commits: Places, changes: Places) -> None:
    """Raise unless begins and commits alternate and every change lies between the two."""
    count = len(commits)
    in_turn = (
        count in (len(begun), len(begun) - 1)
        and (begun[:count] < commits).all()
        and (commits[: max(len(begun) - 1, 0)] < begun[1:]).all()
    )
    if not in_turn:
        raise not_decodable("Begins and commits of transactions do not alternate.")
    before = np.searchsorted(begun, changes) - np.searchsorted(commits, changes)
    if (before != 1).any():
        raise not_decodable("A change lies outside of any transaction.")


@dataclass(frozen=True, eq=False)
class Images:
    """Old or new rows of one relation, in the order of the stream; arrays have an element per row.

    `image` is `old` for whole rows that were updated or deleted, `key` if only their key columns
    are known (all others are NULL), `new` for the results of inserts and updates. `values` are
    texts by column name. `unchanged` has masks of values that PostgreSQL did not send and no old
    row has: such a value is that of the row before. `position` increases with the stream; the old
    row of an update comes right before the new one.
    """

    relation: RelationMessage
    image: Image
    transaction: Places
    xid: Places
    position: Places
    values: Mapping[str, pa.Array]
    unchanged: Mapping[str, Mask]

    def __len__(self) -> int:
        return len(self.position)

    def where(self, selected: Mask) -> Images:
        """Return the rows for which `selected` is true."""
        if selected.all():
            return self
        unchanged = {name: mask[selected] for name, mask in self.unchanged.items()}
        mask = pa.array(selected)
        return Images(
            self.relation,
            self.image,
            self.transaction[selected],
            self.xid[selected],
            self.position[selected],
            {name: array.filter(mask) for name, array in self.values.items()},
            {name: mask for name, mask in unchanged.items() if mask.any()},
        )


@dataclass(frozen=True, eq=False)
class Decoded:
    """The contents of one batch of messages.

    `ended` are the transactions whose commit is in the batch. The `transaction` of a row is one of
    these, or the one still `open`.
    """

    ended: Transactions
    open: Open | None
    images: tuple[Images, ...]


class Decoder:
    """Decodes the batches of one read; `oids` are the relations of interest, None means all.

    `full` are partitioned tables whose partitions all have full identity, whatever the root has.
    After `wal-not-decodable` nothing of the read may be used.
    """

    def __init__(self, oids: Collection[int] | None = None, full: Collection[int] = ()) -> None:
        self._oids = None if oids is None else frozenset(oids)
        self._full = frozenset(full)
        self._relations: dict[int, RelationMessage] = {}
        self._open: Open | None = None
        self._messages = 0
        self._transactions = 0

    def feed(self, batch: pa.Array) -> Decoded:
        """Decode the messages that follow those of the last call."""
        messages = message_array(batch)
        letters = messages.data[messages.starts].astype(np.int64)
        _check_letters(letters)
        is_change = (letters == INSERT) | (letters == UPDATE) | (letters == DELETE)
        changes = np.flatnonzero(is_change)
        transactions = membership(messages, letters, changes, self._open, self._transactions)
        if (messages.ends[changes] - messages.starts[changes] < HEADER_BYTES).any():
            raise not_decodable("A message about a changed row is malformed.")
        images: list[Images] = []
        for relation, indexes in self._versions(messages, letters, changes):
            whole = relation.identity == FULL or relation.oid in self._full
            old, new = find_rows(messages, letters, indexes, relation, whole)
            if len(old.indexes):
                kind: Image = "old" if whole else "key"
                images.append(self._images(relation, kind, messages, old, transactions))
            if len(new.indexes):
                images.append(self._images(relation, "new", messages, new, transactions))
        self._open = transactions.open
        self._messages += len(messages)
        if len(transactions.number):
            self._transactions = int(transactions.number[-1]) + 1
        return Decoded(transactions.ended, transactions.open, tuple(images))

    def _versions(
        self, messages: MessageArray, letters: Places, changes: Places
    ) -> Iterator[tuple[RelationMessage, Places]]:
        """Yield each relation with its changes; once for each version of an altered relation."""
        described: dict[int, list[tuple[int, RelationMessage]]] = {
            oid: [(-1, relation)] for oid, relation in self._relations.items()
        }
        for index in np.flatnonzero(letters == RELATION).tolist():
            relation = parse_relation(messages.message(index))
            versions = described.setdefault(relation.oid, [])
            if not versions or versions[-1][1] != relation:
                versions.append((index, relation))
        self._relations = {oid: versions[-1][1] for oid, versions in described.items()}
        oids = messages.unsigned32(messages.starts[changes] + 1)
        for oid in np.unique(oids).tolist():
            if self._oids is not None and oid not in self._oids:
                continue
            indexes = changes[oids == oid]
            versions = described.get(oid, [])
            # The version that a change follows: none (0), the first (1), …
            version = np.searchsorted([since for since, _ in versions], indexes)
            if (version == 0).any():
                raise not_decodable(f"A change of relation {oid} comes before its description.")
            for number, (_, relation) in enumerate(versions, 1):
                if (version == number).any():
                    yield relation, indexes[version == number]

    def _images(
        self,
        relation: RelationMessage,
        image: Image,
        messages: MessageArray,
        rows: Rows,
        transactions: Membership,
    ) -> Images:
        names = tuple(column.name for column in relation.columns)
        belongs = transactions.of(rows.indexes)
        return Images(
            relation,
            image,
            transactions.number[belongs],
            transactions.xid[belongs],
            2 * (self._messages + rows.indexes) + (image == "new"),
            rows.values(messages, names),
            rows.unchanged(names),
        )


def _check_letters(letters: Places) -> None:
    expected = {BEGIN, COMMIT, RELATION, INSERT, UPDATE, DELETE, *IGNORED}
    for letter in np.unique(letters):
        if int(letter) not in expected:
            raise not_decodable(f"A message begins with {chr(letter)!r}.")
