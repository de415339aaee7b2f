"""Every error of Headrace, with its code.

    HeadraceError
    ├── UserError        the request is wrong; the user changes it
    ├── SchemaChanged    a source no longer has the shape a query was bound to
    ├── Transient        a retry may succeed (a lock, a serialization failure)
    ├── Unavailable      something outside is missing (server, disk, lease, Java)
    ├── NeedsReinit      continuity is lost; a new copy of the data is needed
    └── InternalError    a bug in Headrace

The branch alone decides retry and exit code. The code is a stable kebab-case name: programs and
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
        "invalid-query": "PostgreSQL itself rejects the query; its message is passed on.",
        "unknown-table": "A name in the query is neither a table nor a stream table.",
        "unknown-column": "A column name does not exist in the tables named by FROM.",
        "ambiguous-column": "A column name exists in more than one table named by FROM.",
        "unsupported-query": "The query uses a clause that is not maintained.",
        "query-failed": "The query fails on its data: division by zero, overflow, a bad cast.",
        "unsupported-function": "A function or operator has no exact counterpart on Spark.",
        "unsupported-type": "A column's type has no exact counterpart on Spark.",
        "unsupported-source": "A relation cannot be captured, for example a foreign table.",
        "collation-unsupported": "Text can be ordered under collation C only.",
        "unknown-stream-table": "No stream table has that name.",
        "unknown-database": "No database is attached under that alias.",
        "name-exists": "A table, view or stream table of that name already exists.",
        "invalid-name": "A name is empty, too long or in a schema reserved by Headrace.",
        "invalid-option": "An option or setting does not exist or has an invalid value.",
        "invalid-text": "Text contains a NUL character or is not valid Unicode.",
        "no-project": "There is no project at the given location.",
        "project-closed": "The project was closed; open it again.",
        "permission-denied": "The role lacks a privilege; the hint has the GRANT statement.",
        "capture-not-set-up": "The role may not set up capture; the hint has the SQL for the DBA.",
        "row-security": "Row level security would hide rows of a source from the role.",
        "untrusted-object": "An object of another role could run code with the rights of Headrace.",
        "invalid-dsn": "The connection string is invalid.",
        "unsupported-server": "The server's version is not one of PostgreSQL 15 to 18.",
        "has-dependents": "Other stream tables or users' views depend on the object.",
        "circular": "Stream tables would form a cycle.",
        "unstratifiable": "A query in a cycle is not monotone in the tables of the cycle.",
        "cycle-columns": "The tables of a cycle disagree on the types of their columns.",
        "not-converged": "A recursive query or a cycle did not converge within the allowed rounds.",
        "change-too-large": "More rows changed than a stream table's max_change_rows allows.",
        "key-violated": "Rows of a stream table violate its declared key.",
        "index-row-too-large": "Values of a row are too long for the index of key or include.",
        "table-suspended": "The stream table is suspended; the reason is given.",
        "oracle-unsupported": "PostgreSQL cannot recompute a stream table for a comparison.",
        "stale-plan": "The folder or the catalog has changed since the plan was made.",
    }


class SchemaChanged(HeadraceError):
    """A source no longer has the shape that a query was bound to."""

    exit_code = 3
    codes = {
        "source-dropped": "A source table was dropped or recreated.",
    }


class Transient(HeadraceError):
    """A retry without changes may succeed."""

    exit_code = 4
    codes = {
        "source-locked": "Timed out waiting for a lock on a source table.",
        "slot-busy": "Another client reads a replication slot of Headrace.",
        "cut-interrupted": "Sources were altered while a cut was taken.",
        "connection-lost": "The connection to PostgreSQL was lost.",
        "spark-failed": "A Spark job failed.",
        "spark-lost": "Spark ended during a query; the next query restarts it.",
        "request-lost": "The daemon stopped while it executed a request.",
        "request-cancelled": "A request to the daemon was cancelled.",
        "wait-timeout": "A stream table did not become fresh within the timeout.",
    }


class Unavailable(HeadraceError):
    """Something outside Headrace is missing or full."""

    exit_code = 5
    codes = {
        "server-unreachable": "The PostgreSQL server does not answer.",
        "embedded-server-failed": "The embedded PostgreSQL did not start; see its log file.",
        "java-missing": "No Java was found, or it is older than 17.",
        "spark-unreachable": "The Spark master or Spark Connect server does not answer.",
        "lease-held": "Another process held the writer lease until the timeout.",
        "lease-lost": "Another process took over the writer lease; this one stopped writing.",
        "store-full": "The disk that holds the store is full.",
        "store-unreachable": "The location of the store is not readable or not writable.",
        "standby-server": "The server is a standby; cuts need a primary.",
        "migration-newer": "The catalog was written by a newer version of Headrace.",
    }


class NeedsReinit(HeadraceError):
    """Continuity is lost: exact results need a new copy of the data."""

    exit_code = 6
    codes = {
        "source-rewound": "The source is a different server, or was restored to an earlier point.",
        "store-behind": "A log lacks what the catalog has pinned, or another program changed it.",
        "state-incompatible": "Another version of Headrace created the table with other relations.",
        "epoch-expired": "The epoch was compacted with later ones and is no longer readable.",
        "slot-lost": "The replication slot or its publication was dropped or invalidated.",
        "wal-not-decodable": "A change from a replication slot cannot be decoded exactly.",
        "value-does-not-fit": "A source has a value that its stored type cannot hold.",
    }


class InternalError(HeadraceError):
    """A bug in Headrace."""

    exit_code = 70
    codes = {
        "internal-error": "An unexpected exception; the cause is in the detail and the log file.",
        "invariant": "A step would have violated an invariant; nothing was published.",
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
    """Return the error for an unexpected exception in an operation such as "refresh t"."""
    first = str(cause).strip().partition("\n")[0]
    description = f"{type(cause).__name__}: {first}" if first else type(cause).__name__
    error = InternalError(
        "internal-error",
        f"could not {where}: an internal error occurred",
        detail=description,
    )
    error.__cause__ = cause
    return error


@contextmanager
def contained(where: str) -> Iterator[None]:
    """Raise other exceptions than HeadraceErrors inside as `internal-error`, with their cause."""
    try:
        yield
    except HeadraceError:
        raise
    except Exception as error:
        raise internal_error(where, error) from error
