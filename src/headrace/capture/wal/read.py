"""READ"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from psycopg import Connection

from headrace.capture.cut import OpenCut
from headrace.capture.snapshot import Snapshot
from headrace.capture.wal.decoder import Decoded, Decoder, Images
from headrace.capture.wal.following import Followed
from headrace.capture.wal.protocol import FULL, RelationMessage, not_decodable
from headrace.capture.wal.publication import read_publication
from headrace.capture.wal.rows import Mask
from headrace.capture.wal.slot_reader import SlotLog
from headrace.capture.wal.value_decoders import events_of, stored_images
from headrace.capture.wal.visibility import Releasing, belongs
from headrace.errors import HeadraceError, NeedsReinit
from headrace.source.faults import translated
from headrace.source.table import SourceColumn, SourceTable

# A type and its modifier, and how PostgreSQL writes them: SourceColumn.declared.
TypeNames = Mapping[tuple[int, int], str]

TYPE_NAMES = """
SELECT t.oid, t.typmod, format_type(t.oid, t.typmod)
FROM unnest(%(oids)s::oid[], %(typmods)s::integer[]) AS t (oid, typmod)
"""


def type_names(connection: Connection[Any], relations: Iterable[RelationMessage]) -> TypeNames:
    """The names of all types that the relations' columns have."""
    types = sorted(
        {(column.type_oid, column.typmod) for each in relations for column in each.columns}
    )
    parameters = {"oids": [oid for oid, _ in types], "typmods": [typmod for _, typmod in types]}
    with translated():
        answer = connection.execute(TYPE_NAMES, parameters)
        return {(oid, typmod): name for oid, typmod, name in answer}


def differences(
    relation: RelationMessage, columns: Sequence[SourceColumn], names: TypeNames
) -> tuple[str, ...]:
    """A sentence for each captured column that the relation lacks or has with another type."""
    present = {column.name: column for column in relation.columns}
    found = []
    for column in columns:
        there = present.get(column.name)
        if there is None:
            found.append(f'Column "{column.name}" is not in the log.')
            continue
        declared = names.get((there.type_oid, there.typmod), "of an unknown type")
        if declared != column.declared:
            found.append(
                f'Column "{column.name}" is {declared} in the log instead of {column.declared}.'
            )
    return tuple(found)


@dataclass(frozen=True)
class WantedSource:
    """A source to be read: `table` has its captured columns as they are recorded."""

    table: SourceTable
    followed: Followed


@dataclass(frozen=True)
class LogRead:
    """What was read: a file of weighted rows, or of events, for every source that has any.

    `refused` are sources whose changes are there and cannot be used: a value does not fit, or what
    is in the log does not lead on from what is recorded. The slot may let go of what is before
    `released`, if of anything.
    """

    files: Mapping[int, Path]
    rows: Mapping[int, int]
    refused: Mapping[int, HeadraceError]
    released: int | None
    changed: bool

    def size(self, oid: int) -> int:
        """How many bytes the rows of a source take."""
        return self.files[oid].stat().st_size if oid in self.files else 0

    def batches(self, oid: int) -> Iterator[pa.Table]:
        """The rows of a source in the order of the log, some megabytes at a time."""
        if oid not in self.files:
            return
        with pa.ipc.open_stream(self.files[oid]) as reader:
            for batch in reader:
                yield pa.Table.from_batches([batch])


def read_log(
    cut: OpenCut,
    log: SlotLog,
    wanted: Mapping[int, WantedSource],
    after: str | None,
    folder: Path,
) -> LogRead:
    """Read up to the cut's position what is visible in it and was not in the cut `after`.

    Raises `slot-lost`, `wal-not-decodable`, and `slot-busy` while another reads the slot.
    """
    reading = _Reading(cut, wanted, None if after is None else Snapshot.read(after), folder)
    full = [oid for oid, one in wanted.items() if one.followed.kind == "full"]
    decoder = Decoder(wanted, full)
    with reading.spools:
        for messages in log.messages(cut.cut.position):
            reading.take(decoder.feed(messages))
    _require_published(cut, wanted)
    return LogRead(
        dict(reading.files),
        dict(reading.rows),
        dict(reading.refused),
        reading.releasing.position(cut.cut.position),
        bool(reading.rows) or bool(reading.refused),
    )


def _require_published(cut: OpenCut, wanted: Mapping[int, WantedSource]) -> None:
    """What is decoded follows the publication of now, which may be younger than the snapshot."""
    with cut.database.session() as connection:
        found = read_publication(connection)
    entries = {} if found is None else found.entries
    for oid, one in wanted.items():
        now = entries.get(oid)
        if now is None or (now.oid, now.xmin) != one.followed.entry:
            raise NeedsReinit("slot-lost", "the publication was changed just now")


@dataclass
class _Reading:
    """A reading under way; `spools` are the open files."""

    cut: OpenCut
    wanted: Mapping[int, WantedSource]
    after: Snapshot | None
    folder: Path
    spools: ExitStack = field(default_factory=ExitStack)
    files: dict[int, Path] = field(default_factory=dict)
    rows: dict[int, int] = field(default_factory=dict)
    refused: dict[int, HeadraceError] = field(default_factory=dict)
    _writers: dict[int, pa.ipc.RecordBatchStreamWriter] = field(default_factory=dict)
    _matched: dict[RelationMessage, tuple[str, ...]] = field(default_factory=dict)

    @cached_property
    def upto(self) -> Snapshot:
        return Snapshot.read(self.cut.cut.snapshot)

    @cached_property
    def releasing(self) -> Releasing:
        return Releasing(self.upto)

    def take(self, decoded: Decoded) -> None:
        """Keep of a batch what belongs to the cut."""
        ended = decoded.ended
        self.releasing.add(zip(ended.xid.tolist(), ended.end_lsn.tolist(), strict=True))
        for images in decoded.images:
            oid = images.relation.oid
            if oid in self.refused:
                continue
            ours = images.where(self._visible(images))
            if len(ours):
                try:
                    self._keep(oid, self._stored(ours))
                except NeedsReinit as error:
                    self.refused[oid] = error

    def _visible(self, images: Images) -> Mask:
        """Which rows are of transactions that belong to the cut."""
        xids, places = np.unique(images.xid, return_inverse=True)
        ours = np.array([belongs(xid, self.after, self.upto) for xid in xids.tolist()], np.bool_)
        visible: Mask = ours[places]
        return visible

    def _stored(self, images: Images) -> pa.Table:
        one = self.wanted[images.relation.oid]
        self._require_match(images.relation, one)
        if one.followed.kind == "full":
            return stored_images(images, one.table)
        return events_of(images, one.table, one.followed.key)

    def _require_match(self, relation: RelationMessage, one: WantedSource) -> None:
        """The log has all captured columns as they are recorded, and old rows as announced."""
        if relation not in self._matched:
            with self.cut.database.session() as connection:
                names = type_names(connection, [relation])
            self._matched[relation] = differences(relation, one.table.stored, names)
        whole = relation.identity == FULL
        if self._matched[relation]:
            raise not_decodable(self._matched[relation][0])
        if whole and one.followed.kind == "key":
            raise not_decodable("The replica identity was changed for a while.")

    def _keep(self, oid: int, rows: pa.Table) -> None:
        if oid not in self._writers:
            self.files[oid] = self.folder / f"{oid}.arrow"
            self._writers[oid] = self.spools.enter_context(
                pa.ipc.new_stream(self.files[oid], rows.schema)
            )
        self._writers[oid].write_table(rows)
        self.rows[oid] = self.rows.get(oid, 0) + rows.num_rows
