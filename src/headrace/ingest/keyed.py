"""Events that name old rows by their keys become weighted rows, with the help of the rows before.

Every row in the WAL is one of the rows before, changed by events. Each event knows its
predecessor, the event (or row before) whose row it replaces, and with that nothing has to be
replayed row by row:

    a row that goes    a row before with a later event of its key            −1
    a row that comes   the last event of its key, if that is a row           +1
    an unsent value    that of the predecessor, or of the predecessor's …

Keys are equal if they are stored alike: the WAL has the key of an old row as it was written, and
PostgreSQL has no two rows whose keys it calls equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.capture.wal.protocol import not_decodable
from headrace.capture.wal.value_decoders import IS_KEY, POSITION, unsent
from headrace.catalog.records import Relation
from headrace.source.reading import MAXIMUM_SHOWN_LENGTH
from headrace.store import WEIGHT, Keys, Store, net

Places = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
NONE = -1


def keyed_changes(
    store: Store,
    relation: Relation,
    events: pa.Table,
    key: Sequence[str],
    columns: Sequence[str],
) -> pa.Table:
    """Return the sum of all events of a source since its pin; see `changes_by_key`."""
    before = rows_before(store, relation, touched_keys(events, key), columns)
    return changes_by_key(events, before, key, columns)


def touched_keys(events: pa.Table, key: Sequence[str]) -> Keys:
    """Return all keys that events name; a key that was not sent has an event of its own, too."""
    return Keys(events.select(key).drop_null())


def rows_before(store: Store, relation: Relation, keys: Keys, columns: Sequence[str]) -> pa.Table:
    """Return the relation's rows at its pin with one of the keys, netted."""
    rows = store.lookup(relation.id, relation.pin, keys)
    return net(rows.select([WEIGHT, *columns]))


def changes_by_key(
    events: pa.Table, before: pa.Table, key: Sequence[str], columns: Sequence[str]
) -> pa.Table:
    """Return the weighted rows, netted, that lead from `before` to the rows after all events.

    `before` has all rows with one of the events' keys, each with weight 1. Events come in any
    order. Raise `wal-not-decodable` if events do not continue what was before.
    """
    history = _History.of(events, before, key, columns)
    _require_continuity(history)
    is_last = np.zeros(len(history.order), np.bool_)
    is_last[history.last] = True
    going = np.flatnonzero(~is_last & history.is_before)
    coming = np.flatnonzero(is_last & ~history.is_before & ~history.is_key)
    weight = np.repeat(np.array([-1, 1]), [len(going), len(coming)])
    chosen = np.concatenate([going, coming])
    changed = {name: history.values(name, chosen) for name in columns}
    return net(pa.table({WEIGHT: pa.array(weight), **changed}))


@dataclass(frozen=True, eq=False)
class _History:
    """The rows before and then the events, in the order of the WAL: moments, one a row.

    `order` says where in `rows` a moment's values are. `previous` is the moment before with the
    same key, `last` are those that are no one's previous. A moment that is `paired` is the new row
    of an UPDATE whose old key is the moment right before it.
    """

    rows: pa.Table
    names: tuple[str, ...]
    unsent: dict[str, Mask]
    order: Places
    is_before: Mask
    is_key: Mask
    paired: Mask
    previous: Places
    last: Places

    @classmethod
    def of(
        cls, events: pa.Table, before: pa.Table, key: Sequence[str], columns: Sequence[str]
    ) -> _History:
        count = before.num_rows
        if (before[WEIGHT].to_numpy() != 1).any():
            raise not_decodable("A row of a table with a key was there more than once.")
        positions = events[POSITION].to_numpy()
        by_position = np.argsort(positions, kind="stable")
        position = positions[by_position]
        order = np.concatenate([np.arange(count), count + by_position])
        is_key = np.concatenate([np.zeros(count, np.bool_), _mask(events, IS_KEY)[by_position]])
        paired = np.zeros(len(order), np.bool_)
        follows = position[1:] == position[:-1] + 1
        paired[count + 1 :] = is_key[count:-1] & ~is_key[count + 1 :] & follows
        gaps = {
            name: np.concatenate([np.zeros(count, np.bool_), mask[by_position]])
            for name in columns
            if (mask := _mask(events, unsent(name))).any()
        }
        rows = pa.concat_tables([before.select(columns), events.select(columns)])
        for name in key:
            if name in gaps:
                rows = _with_old_key(rows, name, order, gaps.pop(name), paired)
        if any(rows[name].null_count for name in key):
            raise not_decodable("A row came without its key.")
        numbers = Keys(rows.select(key)).own[order]
        previous, last = _neighbours(numbers)
        return cls(
            rows,
            tuple(key),
            gaps,
            order,
            np.arange(len(order)) < count,
            is_key,
            paired,
            previous,
            last,
        )

    @cached_property
    def is_present(self) -> Mask:
        """Whether there is a row with the moment's key right before it."""
        present: Mask = (self.previous != NONE) & ~self.is_key[self.previous]
        return present

    @cached_property
    def predecessor(self) -> Places:
        """The moment whose row is replaced by that of this one; `NONE` if it is an INSERT."""
        own = np.where(self.is_present, self.previous, NONE)
        return np.where(self.paired, np.roll(own, 1), own)

    def values(self, name: str, moments: Places) -> pa.ChunkedArray:
        """Return the column of some moments, with the values that were not sent filled in."""
        if name in self.unsent:
            moments = _resolved(self.unsent[name], self.predecessor)[moments]
        return self.rows[name].take(pa.array(self.order[moments]))

    def shown(self, moments: Mask) -> str:
        """Return the key of the first of the moments, for a message."""
        first = self.rows.select(self.names).slice(self.order[np.argmax(moments)], 1).to_pylist()[0]
        values = ", ".join(str(first[name])[:MAXIMUM_SHOWN_LENGTH] for name in self.names)
        return f"({values})"


def _require_continuity(history: _History) -> None:
    """Raise `wal-not-decodable` unless every event has the row before that it needs."""
    present = history.is_present
    twice = history.is_before & present
    if twice.any():
        raise not_decodable(f"Two rows had the key {history.shown(twice)}.")
    missing = history.is_key & ~present
    if missing.any():
        raise not_decodable(
            f"A row with the key {history.shown(missing)} was changed or deleted and was not there."
        )
    taken = history.paired & present
    if taken.any():
        raise not_decodable(f"A row was given the key {history.shown(taken)} of another row.")
    alone = history.predecessor == NONE
    for gaps in history.unsent.values():
        if (gaps & alone).any():
            raise not_decodable(
                f"A row with the key {history.shown(gaps & alone)} came without a value that no "
                "row before has."
            )


def _with_old_key(rows: pa.Table, name: str, order: Places, gaps: Mask, paired: Mask) -> pa.Table:
    """Return the rows with key values that were not sent taken from the old key, which was."""
    if (gaps & ~paired).any():
        raise not_decodable("A row came without its key.")
    source = np.arange(len(order))
    source[order[gaps]] = order[np.flatnonzero(gaps) - 1]
    place = rows.schema.get_field_index(name)
    return rows.set_column(place, rows.schema.field(place), rows[name].take(pa.array(source)))


def _neighbours(numbers: Places) -> tuple[Places, Places]:
    """Return the moment before each with the same number, and the last moment of each number."""
    by_number = np.argsort(numbers, kind="stable")
    same = numbers[by_number[1:]] == numbers[by_number[:-1]]
    previous = np.full(len(numbers), NONE)
    previous[by_number[1:][same]] = by_number[:-1][same]
    is_last = np.ones(len(numbers), np.bool_)
    is_last[:-1] = ~same
    return previous, by_number[is_last]


def _resolved(gaps: Mask, predecessor: Places) -> Places:
    """Return the moment that has the value of each: itself, or the last predecessor that has it.

    Each round looks twice as far back, so a row that is changed a million times takes twenty.
    """
    source = np.where(gaps, predecessor, np.arange(len(gaps)))
    while True:
        farther = source[source]
        if (farther == source).all():
            return source
        source = farther


def _mask(events: pa.Table, name: str) -> Mask:
    flags: Mask = events[name].to_numpy()
    return flags.astype(np.bool_)
