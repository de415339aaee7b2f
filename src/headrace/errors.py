"""Every error a person can meet.

    HeadraceError
    ├── UserError        the request is wrong; the user changes it
    ├── SchemaChanged    a source no longer has the shape a query was bound to
    ├── Transient        try again as it is (a lock, a serialization failure)
    ├── Unavailable      something outside is missing (server, disk, lease, Java)
    ├── NeedsReinit      continuity is lost; a new copy of the data is needed
    └── InternalError    a bug in Headrace

The branch alone decides retry and exit code. The code is a stable kebab-case name; programs and
tests compare codes, never messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar


class HeadraceError(Exception):
    """A failure with a stable code, a short message, and optional detail and hint sentences."""

    exit_code: ClassVar[int] = 70
    codes: ClassVar[dict[str, str]] = {}

    def __init__(
        self, code: str, message: str, *, detail: str | None = None, hint: str | None = None
    ) -> None:
        if code not in self.codes:
            raise AssertionError(f"{code!r} is not a code of {type(self).__name__}")
        super().__init__(message)
        self.code = code
        self.message = message
        self.detail = detail
        self.hint = hint

    def __str__(self) -> str:
        parts = [f"{self.message} [{self.code}]"]
        if self.detail:
            parts.append(f"detail: {self.detail}")
        if self.hint:
            parts.append(f"hint: {self.hint}")
        return "\n".join(parts)


class UserError(HeadraceError):
    """The request is wrong and nothing was changed."""

    exit_code = 2
    codes = {
        "syntax-error": "The query text is not valid PostgreSQL SQL.",
        "invalid-query": "PostgreSQL itself refuses the query; its message is passed on.",
        "unknown-table": "A name in the query is neither a table nor a stream table.",
        "unknown-column": "A column name does not exist in the tables named by FROM.",
        "ambiguous-column": "A column name exists in more than one table named by FROM.",
        "unsupported-query": "The query uses a clause that is not maintained.",
        "query-failed": "The query fails on its data: division by zero, overflow, a bad cast.",
        "unsupported-function": "A function or operator has no exact counterpart on Spark.",
        "unsupported-type": "A column's type has no exact counterpart on Spark.",
        "unsupported-source": "A relation that cannot be captured, such as a foreign table.",
        "collation-unsupported": "Ordering text needs collation C.",
        "unknown-stream-table": "No stream table has that name.",
        "unknown-database": "No database is attached under that alias.",
        "name-exists": "A table, view or stream table of that name exists already.",
        "invalid-name": "A name is empty, too long or in a schema reserved by Headrace.",
        "invalid-option": "An option or setting does not exist or has an impossible value.",
        "invalid-text": "Text has a NUL character, or is no Unicode text at all.",
        "no-project": "There is no project at the place that was named.",
        "project-closed": "The project was closed; open it again.",
        "permission-denied": "The role lacks a right; the hint has the GRANT that gives it.",
        "capture-not-set-up": "The role may not set up capture; the hint has the SQL for the DBA.",
        "row-security": "Row level security would filter what the role sees of a source.",
        "untrusted-object": "Somebody else owns what Headrace relies on, or would run as Headrace.",
        "invalid-dsn": "The connection string cannot be parsed.",
        "unsupported-server": "The server's version is outside 15 to 18.",
        "has-dependents": "Other stream tables or users' views need it as it is.",
        "circular": "Stream tables would read each other in a circle.",
        "unstratifiable": "A query of a cycle is not monotone where it must be.",
        "cycle-columns": "Tables that read each other do not agree on their columns' types.",
        "not-converged": "A recursive query or a cycle found new rows in every round allowed.",
        "change-too-large": "More rows changed than a stream table's max_change_rows allows.",
        "key-violated": "Rows of a stream table do not keep the key that was declared for it.",
        "index-row-too-large": "Values of a row are too long for the index of key or include.",
        "table-suspended": "The stream table is suspended; the reason is given.",
        "oracle-unsupported": "PostgreSQL cannot be asked for what a stream table should be.",
        "stale-plan": "The folder or the catalog is no longer what the plan was made from.",
    }


class SchemaChanged(HeadraceError):
    """A source no longer has the shape that a query was bound to."""

    exit_code = 3
    codes = {
        "source-dropped": "A source table was dropped or recreated.",
    }


class Transient(HeadraceError):
    """Trying again as it is may succeed."""

    exit_code = 4
    codes = {
        "source-locked": "Timed out waiting for a lock on a source table.",
        "slot-busy": "Somebody else reads a replication slot of ours.",
        "cut-interrupted": "Sources changed shape while a cut was taken.",
        "connection-lost": "The connection to PostgreSQL broke.",
        "spark-failed": "A Spark job failed.",
        "spark-lost": "Spark died in the middle of a query; the next query starts it again.",
        "request-lost": "The daemon stopped in the middle of a command that was left to it.",
        "request-cancelled": "A command that was left to the daemon was cancelled.",
        "wait-timeout": "A stream table did not become fresh in the time allowed.",
    }


class Unavailable(HeadraceError):
    """Something outside Headrace is missing or full."""

    exit_code = 5
    codes = {
        "server-unreachable": "PostgreSQL does not answer at the given address.",
        "embedded-server-failed": "The embedded PostgreSQL did not start; its log is named.",
        "java-missing": "No Java was found, or it is older than 17.",
        "spark-unreachable": "The Spark master or Spark Connect server does not answer.",
        "lease-held": "Another process is writing; it did not finish in time.",
        "lease-lost": "Another process took over the writer lease; nothing more was written.",
        "store-full": "The disk that holds the store is full.",
        "store-unreachable": "The store's location cannot be read or written.",
        "standby-server": "The server is a standby; cuts are taken on a primary only.",
        "migration-newer": "The catalog was written by a newer version of Headrace.",
    }


class NeedsReinit(HeadraceError):
    """Continuity is lost: only a new copy gives exact results again."""

    exit_code = 6
    codes = {
        "source-rewound": "The source database is not the one, or not as far, as was recorded.",
        "store-behind": "A log is shorter than the catalog's pin, or someone else changed it.",
        "state-incompatible": "Another version of Headrace created the table with other relations.",
        "epoch-expired": "An epoch that was summed up with later ones cannot be read any more.",
        "slot-lost": "The replication slot or its publication is gone or was invalidated.",
        "wal-not-decodable": "What a replication slot sent cannot be decoded exactly.",
        "value-does-not-fit": "A value that its stored type cannot hold; row and column are named.",
    }


class InternalError(HeadraceError):
    """A bug in Headrace."""

    exit_code = 70
    codes = {
        "internal-error": "An unforeseen exception; the cause is in the detail and the log file.",
        "invariant": "A step would have broken an invariant; nothing was published.",
    }


BRANCHES: tuple[type[HeadraceError], ...] = (
    UserError,
    SchemaChanged,
    Transient,
    Unavailable,
    NeedsReinit,
    InternalError,
)


def internal_error(where: str, cause: BaseException) -> InternalError:
    """An exception that no other code names, as the error of an operation such as "refresh t"."""
    first = str(cause).strip().partition("\n")[0]
    said = f"{type(cause).__name__}: {first}" if first else type(cause).__name__
    error = InternalError(
        "internal-error",
        f"could not {where}: something went wrong inside Headrace",
        detail=said,
    )
    error.__cause__ = cause
    return error


@contextmanager
def contained(where: str) -> Iterator[None]:
    """Raise every exception inside that is no HeadraceError as `internal-error`, with its cause."""
    try:
        yield
    except HeadraceError:
        raise
    except Exception as error:
        raise internal_error(where, error) from error
