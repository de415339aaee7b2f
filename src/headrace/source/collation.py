"""The default collation of a database, which constants and casts to text have."""

from __future__ import annotations

from typing import Any

from psycopg import Connection

from headrace.types import Collation

# Code points and bytes are in one order in UTF-8 only; see also `introspect.INSPECT`.
DEFAULT_COLLATION = r"""
SELECT CASE
    WHEN encoding <> pg_char_to_encoding('UTF8') THEN 'other'
    WHEN datlocprovider = 'b' THEN 'C.UTF-8'
    WHEN datlocprovider <> 'c' OR datcollate !~* '^(C|POSIX)(\.utf-?8)?$' THEN 'other'
    WHEN datctype ~* '^(C|POSIX)$' THEN 'C'
    ELSE 'C.UTF-8'
END
FROM pg_database WHERE datname = current_database()
"""


def home_collation(connection: Connection[Any]) -> Collation:
    """The default collation of the database of a connection, as far as it is known."""
    row = connection.execute(DEFAULT_COLLATION).fetchone()
    assert row is not None
    return Collation(row[0])
