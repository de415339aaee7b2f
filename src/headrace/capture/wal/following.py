"""Records of WAL mode: what the catalog has for a database, and for a source."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Following:
    """The record of reading the WAL of one database.

    `acknowledged` is the farthest position to which the slot was requested to advance, recorded
    before the request; at first the position at which the slot was created.
    """

    slot: str
    database: str
    acknowledged: int
    publication_oid: int
    publication_xmin: str
    system_identifier: str
    timeline: int


@dataclass(frozen=True)
class Followed:
    """The record of a source in the publication.

    The WAL has all changes of transactions with an id of `published` or later. `entry` is the row
    of pg_publication_rel (oid and xmin), `kind`, `key` and `index` are the replica identity.
    """

    published: int
    since: datetime
    entry: tuple[int, str]
    kind: str
    key: tuple[int, ...] = ()
    index: int | None = None

    @property
    def identity(self) -> tuple[str, tuple[int, ...], int | None]:
        """Return the replica identity: what the WAL has of an old row."""
        return self.kind, self.key, self.index
