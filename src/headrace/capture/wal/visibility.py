"""Which decoded transactions belong to a cut, and how far a slot may advance after it (pure).

A transaction belongs to the cut whose snapshot is the first to see it, in WAL mode as in trigger
mode. The order of commits in the WAL is not the order in which transactions become visible: the
slot may send some that the cut does not see yet, and after them some that it does see. So a slot
advances only to the first transaction that no durable cut has.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headrace.capture.snapshot import Snapshot

XID_RANGE = 1 << 32


@dataclass(frozen=True)
class Committed:
    """A transaction as the slot sends it: its xid of 32 bits, and the end of its commit."""

    xid: int
    end: int


def widened(xid: int, snapshot: Snapshot) -> int:
    """Return the 64-bit id of a 32-bit one: of all ids with these low bits the nearest.

    PostgreSQL keeps ids that are in use less than half the range apart.
    """
    half = XID_RANGE // 2
    ahead = (xid - snapshot.xmax + half) % XID_RANGE - half
    return snapshot.xmax + ahead


def belongs(xid: int, after: Snapshot | None, upto: Snapshot) -> bool:
    """Return whether a transaction belongs to the cut `upto`; `after` is the cut before."""
    wide = widened(xid, upto)
    return upto.sees(wide) and (after is None or not after.sees(wide))


class Releasing:
    """How far a slot may advance, computed during a read without keeping transactions."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._last: int | None = None
        self._held = False

    def add(self, transactions: Iterable[tuple[int, int]]) -> None:
        """Add the next transactions of the slot, in its order: xid, and the end of the commit."""
        for xid, end in transactions:
            if self._held or not self._snapshot.sees(widened(xid, self._snapshot)):
                self._held = True
                return
            self._last = end

    def position(self, upto: int) -> int | None:
        """Return the position, after all transactions up to `upto` were added; None: stay."""
        if self._held:
            return self._last
        return upto if self._last is None else max(self._last, upto)


def released(transactions: Iterable[Committed], snapshot: Snapshot, upto: int) -> int | None:
    """Return how far the slot may advance when the cut of `snapshot` is durable.

    `transactions` are all of a peek up to `upto`, in its order. None: the slot stays, because the
    first of them belongs to a later cut.
    """
    releasing = Releasing(snapshot)
    releasing.add((each.xid, each.end) for each in transactions)
    return releasing.position(upto)
