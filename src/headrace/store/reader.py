"""Reading the files of relations: whole, or the rows with certain keys; what is kept in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pyarrow as pa

from headrace.store.failure import unreadable
from headrace.store.groups import Footer, may_match
from headrace.store.index import Indexes
from headrace.store.keys import Keys
from headrace.store.layout import weighted
from headrace.store.location import StoreLocation
from headrace.store.log import LogFile, Pin
from headrace.store.lookup import By, LookupCost, read_columns, read_footer, read_matching
from headrace.store.part import read_part
from headrace.store.recent import Recent

FOOTER_BYTES = 64 * 1024 * 1024
# Relations of more rows are not indexed: it would take gigabytes, and minutes.
MOST_INDEXED = 20_000_000
# A file of so few rows that was read is likely read again.
FEW_ROWS = 10_000
# An index that compares so small a part of a file is not weighed against its row groups.
FEW = 16


class Reader:
    """Files that were written lately are in memory; of others their footers, and an index.

    A file never changes, so what is kept of it stays right. Errors name relation and pin.
    """

    def __init__(self, place: StoreLocation, memory_bytes: int) -> None:
        self._place = place
        self._recent = Recent[pa.Table](memory_bytes)
        self._footers = Recent[Footer](FOOTER_BYTES)
        folder = Path(place.root) if place.local else None
        self._indexes = Indexes(partial(read_columns, place), folder)

    def keep(self, file: LogFile, rows: pa.Table) -> None:
        """Have the rows of a file that was just written in memory."""
        self._recent.put(file.uri, rows, rows.get_total_buffer_size())

    def kept(self, file: LogFile) -> pa.Table | None:
        return self._recent.get(file.uri)

    def forget(self, files: Collection[LogFile]) -> None:
        """Let go of the indexes of files that nobody will look into any more."""
        self._indexes.forget(files)

    def forget_all(self, folder: str) -> None:
        """Let go of all that is known of the files in a folder."""
        for kept in (self._recent, self._footers):
            kept.forget(folder)
        self._indexes.forget(prefix=folder)

    def read(self, relation: str, pin: Pin, file: LogFile, columns: pa.Schema) -> pa.Table:
        """All rows of a file."""
        recent = self.kept(file)
        if recent is not None:
            return recent
        with self._reading(relation, pin, file):
            rows = read_part(self._place.files, self._place.path(file.uri), columns)
        if file.rows <= FEW_ROWS:
            self.keep(file, rows)
        return rows

    def matching(
        self,
        relation: str,
        pin: Pin,
        file: LogFile,
        keys: Keys,
        wanted: pa.Schema,
        most: int | None,
        by: By,
    ) -> pa.Table:
        """The rows of a file whose key is in the set; more than `most` are not all."""
        names = weighted(wanted).names
        recent = self.kept(file)
        if recent is not None:
            return keys.matching(recent).select(names)
        if by == "index":
            self._indexes.make(file, keys, names)
        if by == "index" or (
            by == "best" and self._by_index(relation, pin, file, keys, names) is not None
        ):
            found = self._indexes.find(file, keys, weighted(wanted), most)
            if found is not None:
                return found
        footer = self._footer(relation, pin, file, keys.names)
        groups = footer.rows > 0 if by == "scan" else may_match(footer, keys)
        with self._reading(relation, pin, file):
            files, path = self._place.files, self._place.path(file.uri)
            return read_matching(files, path, footer, groups, wanted, keys, most)

    def reach(
        self, relation: str, pin: Pin, files: Collection[LogFile], keys: Keys, wanted: pa.Schema
    ) -> LookupCost:
        """What a look-up in these files compares; those that lack an index get one for the next."""
        names = weighted(wanted).names
        worth_an_index = sum(file.rows for file in files) <= MOST_INDEXED
        rows, indexed = 0, False
        for file in files:
            if self.kept(file) is not None:
                rows += file.rows
                continue
            if worth_an_index:
                self._indexes.want(file, keys, names)
            found = self._by_index(relation, pin, file, keys, names)
            if found is None:
                found = self._by_groups(relation, pin, file, keys)
            else:
                indexed = True
            rows += found
        return LookupCost(rows, indexed)

    def _by_index(
        self, relation: str, pin: Pin, file: LogFile, keys: Keys, columns: Collection[str]
    ) -> int | None:
        """How many rows an index compares; None if there is none, or row groups leave fewer."""
        found = self._indexes.reach(file, keys, columns)
        if found is None or found <= file.rows // FEW:
            return found
        return found if found <= self._by_groups(relation, pin, file, keys) else None

    def _by_groups(self, relation: str, pin: Pin, file: LogFile, keys: Keys) -> int:
        footer = self._footer(relation, pin, file, keys.names)
        return int(footer.rows[may_match(footer, keys)].sum())

    def _footer(self, relation: str, pin: Pin, file: LogFile, names: Iterable[str]) -> Footer:
        """What is known of a file's row groups, with the bounds of these columns."""
        footer = self._footers.get(file.uri)
        known = frozenset(() if footer is None else footer.bounds)
        if footer is None or not known.issuperset(names):
            with self._reading(relation, pin, file):
                path = self._place.path(file.uri)
                footer = read_footer(self._place.files, path, known.union(names))
            self._footers.put(file.uri, footer, footer.size)
        return footer

    @contextmanager
    def _reading(self, relation: str, pin: Pin, file: LogFile) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            found = f"{file.uri} cannot be read"
            raise unreadable(error, self._place, relation, pin, found) from error
