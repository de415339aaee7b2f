"""Reading the files of relations, whole or by keys, with a cache of rows and footers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pyarrow as pa

from headrace.store.cache import Recent
from headrace.store.failure import unreadable
from headrace.store.index import Indexes
from headrace.store.keys import Keys
from headrace.store.layout import weighted
from headrace.store.location import StoreLocation
from headrace.store.log import LogFile, Pin
from headrace.store.lookup import (
    By,
    Footer,
    LookupCost,
    may_match,
    read_columns,
    read_footer,
    read_matching,
)
from headrace.store.parquet import read_part

FOOTER_BYTES = 64 * 1024 * 1024
# Relations of more rows are not indexed: it would take gigabytes, and minutes.
MOST_INDEXED = 20_000_000
# Files of at most so many rows are cached after a read.
FEW_ROWS = 10_000
# An index that compares at most 1/16 of a file is used without checking row groups.
FEW = 16


class Reader:
    """Reads files through a cache of recent rows, footers and indexes.

    A file never changes, so cache entries stay right. Errors name relation and pin.
    """

    def __init__(self, place: StoreLocation, memory_bytes: int) -> None:
        self._place = place
        self._recent = Recent[pa.Table](memory_bytes)
        self._footers = Recent[Footer](FOOTER_BYTES)
        folder = Path(place.root) if place.local else None
        self._indexes = Indexes(partial(read_columns, place), folder)

    def keep(self, file: LogFile, rows: pa.Table) -> None:
        """Cache the rows of a file that was just written or read."""
        self._recent.put(file.uri, rows, rows.get_total_buffer_size())

    def kept(self, file: LogFile) -> pa.Table | None:
        return self._recent.get(file.uri)

    def forget(self, files: Collection[LogFile]) -> None:
        """Drop the indexes of files that are no longer read."""
        self._indexes.forget(files)

    def forget_all(self, folder: str) -> None:
        """Drop everything cached for the files in a folder."""
        for cache in (self._recent, self._footers):
            cache.forget(folder)
        self._indexes.forget(prefix=folder)

    def read(self, relation: str, pin: Pin, file: LogFile, columns: pa.Schema) -> pa.Table:
        """Return all rows of a file."""
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
        columns: pa.Schema,
        most: int | None,
        by: By,
    ) -> pa.Table:
        """Return the rows of a file whose key is in the set; more than `most` are incomplete."""
        names = weighted(columns).names
        recent = self.kept(file)
        if recent is not None:
            return keys.matching(recent).select(names)
        if by == "index":
            self._indexes.make(file, keys, names)
        if by == "index" or (
            by == "best" and self._by_index(relation, pin, file, keys, names) is not None
        ):
            rows = self._indexes.find(file, keys, weighted(columns), most)
            if rows is not None:
                return rows
        footer = self._footer(relation, pin, file, keys.names)
        groups = footer.rows > 0 if by == "scan" else may_match(footer, keys)
        with self._reading(relation, pin, file):
            files, path = self._place.files, self._place.path(file.uri)
            return read_matching(files, path, footer, groups, columns, keys, most)

    def lookup_cost(
        self, relation: str, pin: Pin, files: Collection[LogFile], keys: Keys, columns: pa.Schema
    ) -> LookupCost:
        """Return the cost of a lookup in these files, and request indexes for later lookups."""
        names = weighted(columns).names
        worth_an_index = sum(file.rows for file in files) <= MOST_INDEXED
        rows, indexed = 0, False
        for file in files:
            if self.kept(file) is not None:
                rows += file.rows
                continue
            if worth_an_index:
                self._indexes.request(file, keys, names)
            compared = self._by_index(relation, pin, file, keys, names)
            if compared is None:
                compared = self._by_groups(relation, pin, file, keys)
            else:
                indexed = True
            rows += compared
        return LookupCost(rows, indexed)

    def _by_index(
        self, relation: str, pin: Pin, file: LogFile, keys: Keys, columns: Collection[str]
    ) -> int | None:
        """Return how many rows an index compares; None if row groups leave fewer."""
        compared = self._indexes.compared_rows(file, keys, columns)
        if compared is None or compared <= file.rows // FEW:
            return compared
        return compared if compared <= self._by_groups(relation, pin, file, keys) else None

    def _by_groups(self, relation: str, pin: Pin, file: LogFile, keys: Keys) -> int:
        footer = self._footer(relation, pin, file, keys.names)
        return int(footer.rows[may_match(footer, keys)].sum())

    def _footer(self, relation: str, pin: Pin, file: LogFile, names: Iterable[str]) -> Footer:
        """Return a file's footer with the bounds of these columns."""
        footer = self._footers.get(file.uri)
        cached_names = frozenset(() if footer is None else footer.bounds)
        if footer is None or not cached_names.issuperset(names):
            with self._reading(relation, pin, file):
                path = self._place.path(file.uri)
                footer = read_footer(self._place.files, path, cached_names.union(names))
            self._footers.put(file.uri, footer, footer.size)
        return footer

    @contextmanager
    def _reading(self, relation: str, pin: Pin, file: LogFile) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            problem = f"{file.uri} cannot be read"
            raise unreadable(error, self._place, relation, pin, problem) from error
