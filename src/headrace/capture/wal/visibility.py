"""Which decoded transactions belong to a cut, and how far a slot may let go after it (pure).

A transaction belongs to the cut whose snapshot is the first to see it, in WAL mode as in trigger
mode. The order of commits in the log is not the order in which transactions become visible: the
slot may hand out some that the cut does not see yet, and some after them that it does see. So a
slot lets go only of what stands before the first transaction that no durable cut has.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headrace.capture.snapshot import Snapshot

CIRCLE = 1 << 32


@dataclass(frozen=True)
class Committed:
    """A transaction as the slot hands it out: its xid of 32 bits, and where its commit ends."""

    xid: int
    end: int


def widened(xid: int, snapshot: Snapshot) -> int:
    """The 64-bit id of a 32-bit one: of all that end in it, the one nearest to the snapshot.

    PostgreSQL itself keeps ids that are in use less than half a circle apart.
    """
    half = CIRCLE // 2
    ahead = (xid - snapshot.xmax + half) % CIRCLE - half
    return snapshot.xmax + ahead


def belongs(xid: int, after: Snapshot | None, upto: Snapshot) -> bool:
    """Whether a decoded transaction is of the cut `upto`, where `after` was the cut before."""
    wide = widened(xid, upto)
    return upto.sees(wide) and (after is None or not after.sees(wide))


class Releasing:
    """How far a slot may let go, found out while a reading goes on: no transaction is kept."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._last: int | None = None
        self._held = False

    def add(self, transactions: Iterable[tuple[int, int]]) -> None:
        """The next transactions of the slot, in its order: xid, and where the commit ends."""
        for xid, end in transactions:
            if self._held or not self._snapshot.sees(widened(xid, self._snapshot)):
                self._held = True
                return
            self._last = end

    def position(self, upto: int) -> int | None:
        """How far, once all that a peek up to `upto` gave was added; None: not at all."""
        if self._held:
            return self._last
        return upto if self._last is None else max(self._last, upto)


def released(transactions: Iterable[Committed], snapshot: Snapshot, upto: int) -> int | None:
    """How far the slot may be advanced when the cut of `snapshot` is durable.

    `transactions` are all that a peek up to `upto` gave, in its order. None: not at all, because
    the first of them is still to come in a later cut.
    """
    releasing = Releasing(snapshot)
    releasing.add((one.xid, one.end) for one in transactions)
    return releasing.position(upto)
