"""Which transaction each message of the slot belongs to.

    begin    B, commit LSN, time of commit, xid              21 bytes
    commit   C, flags, commit LSN, end LSN, time of commit   26 bytes

pgoutput sends whole transactions in the order of their commits, never two at a time. One may
begin in a batch of messages and end in a later one: `Open` is carried from batch to batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.capture.wal.byte_columns import Packed, Places
from headrace.capture.wal.messages import BEGIN, COMMIT, not_decodable

BEGIN_BYTES, COMMIT_BYTES = 21, 26


@dataclass(frozen=True)
class Open:
    """A transaction of which the begin was seen and the commit not yet."""

    number: int
    xid: int
    commit_lsn: int


@dataclass(frozen=True, eq=False)
class Transactions:
    """Transactions that ended, in the order of the stream; one element of each array a transaction.

    `number` counts the transactions of the stream from 0. `xid` is the top-level one, in 32 bits.
    Whoever acknowledges up to `end_lsn` has all of the transaction.
    """

    number: Places
    xid: Places
    commit_lsn: Places
    end_lsn: Places

    def __len__(self) -> int:
        return len(self.number)


@dataclass(frozen=True, eq=False)
class Membership:
    """The transactions of a batch, and which of them a message is in.

    `ended` and after them `open` are all that have a message in the batch. `number` and `xid` have
    an element for each of them, `begun` the index of the message that begins it (−1: earlier).
    """

    ended: Transactions
    open: Open | None
    number: Places
    xid: Places
    begun: Places

    def of(self, indexes: Places) -> Places:
        """Which of the batch's transactions messages are in, as an index of `number` and `xid`."""
        return np.searchsorted(self.begun, indexes, side="right") - 1


def membership(
    messages: Packed, letters: Places, changes: Places, carried: Open | None, following: int
) -> Membership:
    """Read begins and commits; `changes` are the indexes of messages that must lie between them.

    `following` is the number of the next transaction to begin.
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


def _check_lengths(messages: Packed, indexes: Places, length: int) -> None:
    if (messages.ends[indexes] - messages.starts[indexes] != length).any():
        raise not_decodable("A begin or commit message is malformed.")


def _check_order(begun: Places, commits: Places, changes: Places) -> None:
    """Begin and commit take turns, and every change is between a begin and its commit."""
    count = len(commits)
    in_turn = (
        count in (len(begun), len(begun) - 1)
        and (begun[:count] < commits).all()
        and (commits[: max(len(begun) - 1, 0)] < begun[1:]).all()
    )
    if not in_turn:
        raise not_decodable("Begins and commits of transactions do not take turns.")
    before = np.searchsorted(begun, changes) - np.searchsorted(commits, changes)
    if (before != 1).any():
        raise not_decodable("A change lies outside of any transaction.")
