"""PostgreSQL's errors as HeadraceErrors, by SQLSTATE and exception class, never by message."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from adbc_driver_manager import Error as ArrowError

from headrace.errors import HeadraceError, InternalError, Transient, Unavailable, UserError

# A SQLSTATE, or the first characters of several; the longest match decides.
FAULTS: dict[str, tuple[type[HeadraceError], str]] = {
    "08": (Transient, "connection-lost"),
    "25006": (Unavailable, "standby-server"),
    "28": (UserError, "permission-denied"),
    "3D000": (UserError, "invalid-dsn"),
    "40": (Transient, "source-locked"),
    "42501": (UserError, "permission-denied"),
    "53": (Unavailable, "server-unreachable"),
    "55006": (Transient, "source-locked"),
    "55P03": (Transient, "source-locked"),
    "57014": (Transient, "source-locked"),
    "57P": (Transient, "connection-lost"),
    "58": (Unavailable, "server-unreachable"),
}


@contextmanager
def translated() -> Iterator[None]:
    """Raise errors of psycopg and ADBC inside as HeadraceErrors."""
    try:
        yield
    except psycopg.Error as error:
        raise translate(error) from error
    except ArrowError as error:
        raise translate(error) from error


def translate(error: psycopg.Error | ArrowError) -> HeadraceError:
    """Return the HeadraceError for an error of psycopg or ADBC, with PostgreSQL's own message."""
    state = error.sqlstate or ""
    branch, code = _classify(error, state)
    if isinstance(error, psycopg.Error) and error.diag.message_primary:
        message, detail, hint = (
            error.diag.message_primary,
            error.diag.message_detail,
            error.diag.message_hint,
        )
    else:
        message, detail, hint = str(error).strip().split("\n", 1)[0], None, None
    if branch is InternalError:
        detail = " ".join(part for part in (detail, f"SQLSTATE {state or 'unknown'}.") if part)
    return branch(code, message, detail=detail, hint=hint)


def _classify(error: psycopg.Error | ArrowError, state: str) -> tuple[type[HeadraceError], str]:
    for length in range(len(state), 0, -1):
        if state[:length] in FAULTS:
            return FAULTS[state[:length]]
    # libpq gives no SQLSTATE when the connection broke while it waited.
    if not state and isinstance(error, psycopg.OperationalError | ArrowError):
        return Transient, "connection-lost"
    return InternalError, "invariant"
