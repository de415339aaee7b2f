"""What is recorded of reading changes from the log of a server: of a database, and of a source."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Following:
    """What is recorded of reading one database.

    `acknowledged` is the farthest position to which the slot was ever asked to move, recorded
    before it was asked; at first the one at which it was made.
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
    """What is recorded of a source that is published.

    All that transactions with an id of `published` or later do to it is in the log. `entry` is the
    row of pg_publication_rel (oid and xmin), `kind`, `key` and `index` are its replica identity.
    """

    published: int
    since: datetime
    entry: tuple[int, str]
    kind: str
    key: tuple[int, ...] = ()
    index: int | None = None

    @property
    def identity(self) -> tuple[str, tuple[int, ...], int | None]:
        """What of an old row the log has."""
        return self.kind, self.key, self.index
