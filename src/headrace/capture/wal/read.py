"""Reading the WAL for a cut: the changes of every source in WAL mode, on disk.

Transactions of any size pass through a batch at a time. Nothing of a read is used before all of it
was read: a message that cannot be decoded invalidates the whole read.
"""

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
from headrace.capture.wal.slot_reader import SlotReader
from headrace.capture.wal.value_decoders import events_of, stored_images
from headrace.capture.wal.visibility import Releasing, belongs
from headrace.errors import HeadraceError, NeedsReinit
from headrace.source.faults import translated
from headrace.source.table import SourceColumn, SourceTable

# Names of types by oid and modifier, as in SourceColumn.declared.
TypeNames = Mapping[tuple[int, int], str]

TYPE_NAMES = """
SELECT t.oid, t.typmod, format_type(t.oid, t.typmod)
FROM unnest(%(oids)s::oid[], %(typmods)s::integer[]) AS t (oid, typmod)
"""


def type_names(connection: Connection[Any], relations: Iterable[RelationMessage]) -> TypeNames:
    """Return the names of all types of the relations' columns."""
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
    """Return a sentence for each captured column that is missing or has another type in the WAL."""
    present = {column.name: column for column in relation.columns}
    sentences = []
    for column in columns:
        in_wal = present.get(column.name)
        if in_wal is None:
            sentences.append(f'Column "{column.name}" is not in the WAL.')
            continue
        declared = names.get((in_wal.type_oid, in_wal.typmod), "of an unknown type")
        if declared != column.declared:
            sentences.append(
                f'Column "{column.name}" is {declared} in the WAL instead of {column.declared}.'
            )
    return tuple(sentences)


@dataclass(frozen=True)
class WalSource:
    """A source to read: `table` has its captured columns as recorded."""

    table: SourceTable
    followed: Followed


@dataclass(frozen=True)
class WalRead:
    """The result of a read: a file of weighted rows, or of events, for every source with changes.

    `refused` are sources whose changes cannot be used: a value does not fit, or the WAL does not
    continue what is recorded. The slot may release what is before `released`; None: nothing.
    """

    files: Mapping[int, Path]
    rows: Mapping[int, int]
    refused: Mapping[int, HeadraceError]
    released: int | None
    changed: bool

    def size(self, oid: int) -> int:
        """Return how many bytes the rows of a source take."""
        return self.files[oid].stat().st_size if oid in self.files else 0

    def batches(self, oid: int) -> Iterator[pa.Table]:
        """Yield the rows of a source in the order of the WAL, some megabytes at a time."""
        if oid not in self.files:
            return
        with pa.ipc.open_stream(self.files[oid]) as reader:
            for batch in reader:
                yield pa.Table.from_batches([batch])


def read_wal(
    cut: OpenCut,
    reader: SlotReader,
    sources: Mapping[int, WalSource],
    after: str | None,
    folder: Path,
) -> WalRead:
    """Read up to the cut's position all changes that the cut sees and the cut `after` did not.

    Raises `slot-lost`, `wal-not-decodable`, and `slot-busy` while another client reads the slot.
    """
    reading = _Reading(cut, sources, None if after is None else Snapshot.read(after), folder)
    full = [oid for oid, source in sources.items() if source.followed.kind == "full"]
    decoder = Decoder(sources, full)
    with reading.spools:
        for messages in reader.messages(cut.cut.position):
            reading.take(decoder.feed(messages))
    _require_published(cut, sources)
    return WalRead(
        dict(reading.files),
        dict(reading.rows),
        dict(reading.refused),
        reading.releasing.position(cut.cut.position),
        bool(reading.rows) or bool(reading.refused),
    )


def _require_published(cut: OpenCut, sources: Mapping[int, WalSource]) -> None:
    """Raise `slot-lost` if the publication has changed since the cut's snapshot.

    PostgreSQL decodes by the publication of now.
    """
    with cut.database.session() as connection:
        publication = read_publication(connection)
    entries = {} if publication is None else publication.entries
    for oid, source in sources.items():
        now = entries.get(oid)
        if now is None or (now.oid, now.xmin) != source.followed.entry:
            raise NeedsReinit("slot-lost", "the publication was changed concurrently")


@dataclass
class _Reading:
    """A read in progress; `spools` are the open files."""

    cut: OpenCut
    sources: Mapping[int, WalSource]
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
        """Write the rows of a batch that belong to the cut."""
        ended = decoded.ended
        self.releasing.add(zip(ended.xid.tolist(), ended.end_lsn.tolist(), strict=True))
        for images in decoded.images:
            oid = images.relation.oid
            if oid in self.refused:
                continue
            visible_rows = images.where(self._visible(images))
            if len(visible_rows):
                try:
                    self._keep(oid, self._stored(visible_rows))
                except NeedsReinit as error:
                    self.refused[oid] = error

    def _visible(self, images: Images) -> Mask:
        """Return which rows are of transactions that belong to the cut."""
        xids, places = np.unique(images.xid, return_inverse=True)
        in_cut = np.array([belongs(xid, self.after, self.upto) for xid in xids.tolist()], np.bool_)
        visible: Mask = in_cut[places]
        return visible

    def _stored(self, images: Images) -> pa.Table:
        source = self.sources[images.relation.oid]
        self._require_match(images.relation, source)
        if source.followed.kind == "full":
            return stored_images(images, source.table)
        return events_of(images, source.table, source.followed.key)

    def _require_match(self, relation: RelationMessage, source: WalSource) -> None:
        """Raise unless the WAL has all captured columns and the identity as recorded."""
        if relation not in self._matched:
            with self.cut.database.session() as connection:
                names = type_names(connection, [relation])
            self._matched[relation] = differences(relation, source.table.stored, names)
        whole = relation.identity == FULL
        if self._matched[relation]:
            raise not_decodable(self._matched[relation][0])
        if whole and source.followed.kind == "key":
            raise not_decodable("The replica identity was changed for a while.")

    def _keep(self, oid: int, rows: pa.Table) -> None:
        if oid not in self._writers:
            self.files[oid] = self.folder / f"{oid}.arrow"
            self._writers[oid] = self.spools.enter_context(
                pa.ipc.new_stream(self.files[oid], rows.schema)
            )
        self._writers[oid].write_table(rows)
        self.rows[oid] = self.rows.get(oid, 0) + rows.num_rows
