"""The heartbeat of a daemon: a row of the catalog that it writes outside the catalog's session."""

from __future__ import annotations

from datetime import timedelta

from psycopg import sql

from headrace.catalog.catalog import Connection
from headrace.catalog.records import Heartbeat

_BEAT = sql.SQL(
    "INSERT INTO headrace.daemon_heartbeat AS known (fence, beat_at, round_seconds, busy)"
    " VALUES (%s, pg_catalog.clock_timestamp(), %s, %s) ON CONFLICT (one) DO UPDATE SET"
    " fence = EXCLUDED.fence, beat_at = EXCLUDED.beat_at,"
    " round_seconds = EXCLUDED.round_seconds, busy = EXCLUDED.busy"
    " WHERE known.fence OPERATOR(pg_catalog.<=) EXCLUDED.fence"
)

# By the server's clock alone, which wrote the time.
_READ = sql.SQL(
    "SELECT pg_catalog.date_part("
    "'epoch', pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) beat_at), round_seconds, busy"
    " FROM headrace.daemon_heartbeat AS beat"
    " JOIN headrace.lease AS lease ON beat.fence OPERATOR(pg_catalog.=) lease.fence"
)


def beat(connection: Connection, fence: int, in_round: timedelta, busy: str | None) -> None:
    """Write the heartbeat of the daemon with this fence, unless a newer daemon has written one."""
    connection.execute(_BEAT, (fence, in_round.total_seconds(), busy))


def last_heartbeat(connection: Connection) -> Heartbeat | None:
    """Return the heartbeat under the newest lease, None if there was none so far."""
    row = connection.execute(_READ).fetchone()
    if row is None:
        return None
    age, in_round, busy = row
    return Heartbeat(timedelta(seconds=age), timedelta(seconds=in_round), busy)
