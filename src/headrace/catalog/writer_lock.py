"""The writer's advisory lock, of which no other role can deprive us.

Everybody may take an advisory lock whose number they know, and can see the numbers of those that
are held. So the number is kept in table headrace.lease, which only our roles can write. A writer
that finds the lock held by a stranger changes the number; a writer that gets the lock verifies that
the number has not changed. The former locks the row for update and the latter for share, so that
one of the two waits for the other.
"""

from __future__ import annotations

import secrets

from headrace.catalog import advisory
from headrace.catalog.catalog import Connection

_NUMBER = "SELECT lock_number FROM headrace.lease"

# Strangers are roles that could not write the number, nor become its owner; a prepared transaction
# has no session.
_STRANGER = """
SELECT FROM pg_locks AS lock
JOIN pg_database ON pg_database.oid = lock.database AND datname = current_database()
LEFT JOIN pg_stat_activity AS session ON session.pid = lock.pid
WHERE lock.locktype = 'advisory' AND (classid, objid, objsubid) = (%s, %s, 2) AND lock.granted
    AND has_table_privilege(session.usesysid, 'headrace.lease', 'UPDATE') IS NOT TRUE
    AND pg_has_role(session.usesysid,
        (SELECT relowner FROM pg_class WHERE oid = 'headrace.lease'::regclass), 'MEMBER'
    ) IS NOT TRUE
LIMIT 1
"""


def take(connection: Connection) -> int | None:
    """Take the writer's lock for the session; return its number, None if another writer has it."""
    while True:
        number = _number(connection)
        if _try(connection, number):
            if _number(connection, " FOR SHARE") == number:
                return number
            release(connection, number)
        elif not _is_strangers(connection, number):
            return None
        else:
            _change(connection)


def release(connection: Connection, number: int) -> None:
    connection.execute("SELECT pg_advisory_unlock(%s, %s)", (advisory.SPACE, number))


def _change(connection: Connection) -> None:
    """Choose another number, if a stranger still has the lock."""
    with connection.transaction():
        number = _number(connection, " FOR UPDATE")
        if _is_strangers(connection, number):
            chosen = advisory.FIRST_CHOSEN + secrets.randbelow(
                advisory.LAST_CHOSEN - advisory.FIRST_CHOSEN
            )
            connection.execute("UPDATE headrace.lease SET lock_number = %s", (chosen,))


def _number(connection: Connection, locked: str = "") -> int:
    row = connection.execute(f"{_NUMBER}{locked}".encode()).fetchone()
    assert row is not None
    return int(row[0])


def _try(connection: Connection, number: int) -> bool:
    query = "SELECT pg_try_advisory_lock(%s, %s)"
    row = connection.execute(query, (advisory.SPACE, number)).fetchone()
    return row is not None and bool(row[0])


def _is_strangers(connection: Connection, number: int) -> bool:
    return connection.execute(_STRANGER, (advisory.SPACE, number)).fetchone() is not None
