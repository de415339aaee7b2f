"""Requests in PostgreSQL: every change of a request is one statement that checks its state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psycopg import sql

from headrace.catalog import statements
from headrace.catalog.catalog import Connection, lease_lost
from headrace.catalog.codec import REQUESTS, to_json
from headrace.catalog.error_codec import encode_error
from headrace.catalog.heartbeat import last_heartbeat
from headrace.catalog.records import Heartbeat, Lease, Request
from headrace.catalog.requests import CHANNEL, request_lost
from headrace.catalog.session import Session
from headrace.catalog.writer_lease import serving

_REQUEST = sql.SQL(
    "WITH forgotten AS ("
    "DELETE FROM headrace.requests WHERE finished_at < now() - interval '7 days'"
    "), added AS ("
    "INSERT INTO headrace.requests (command, requested_by) VALUES (%s::json, %s) RETURNING id"
    ") SELECT id, pg_notify(%s, id::text) FROM added"
)

# The statement locks nothing while no request is queued. If the fence is raised at the same moment,
# the request has a fence that is not the newest, and counts as lost.
_NEXT = sql.SQL(
    "WITH taken AS ("
    "UPDATE headrace.requests SET state = 'running', started_at = clock_timestamp(), fence = %s"
    " WHERE id = (SELECT id FROM headrace.requests WHERE state = 'queued'"
    " ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)"
    " AND EXISTS (SELECT FROM headrace.lease WHERE fence = %s) RETURNING id"
    ") SELECT fence, (SELECT id FROM taken) FROM headrace.lease"
)

_GIVE_BACK = sql.SQL(
    "UPDATE headrace.requests SET state = 'queued', started_at = NULL, fence = NULL"
    " WHERE id = %s AND state = 'running'"
)

_REPORT = sql.SQL(
    "UPDATE headrace.requests SET progress = %s::json WHERE id = %s AND state = 'running'"
)

_FINISH = sql.SQL(
    "UPDATE headrace.requests SET finished_at = clock_timestamp(), result = %s::json,"
    " error = %s::json, state = CASE WHEN NOT %s THEN 'done' WHEN cancel THEN 'cancelled'"
    " ELSE 'failed' END WHERE id = %s AND state = 'running'"
)

_WITHDRAW = sql.SQL(
    "UPDATE headrace.requests SET state = 'cancelled', cancel = true,"
    " finished_at = clock_timestamp() WHERE id = %s AND state = 'queued' RETURNING id"
)

_CANCEL = sql.SQL(
    "UPDATE headrace.requests SET cancel = true,"
    " finished_at = CASE WHEN state = 'queued' THEN clock_timestamp() END,"
    " state = CASE WHEN state = 'queued' THEN 'cancelled' ELSE state END"
    " WHERE id = %s AND state IN ('queued', 'running')"
)

_CANCELLED = sql.SQL("SELECT id FROM headrace.requests WHERE state = 'running' AND cancel")

_LOSE = sql.SQL(
    "UPDATE headrace.requests SET state = 'failed', finished_at = clock_timestamp(),"
    " error = %s::json WHERE state = 'running' AND fence < %s"
)


class PostgresRequests:
    """Implements `Requests` on the catalog's session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def serving(self) -> Lease | None:
        with self._session.use() as connection:
            return serving(connection)

    def heartbeat(self) -> Heartbeat | None:
        with self._session.use() as connection:
            return last_heartbeat(connection)

    def request(self, command: dict[str, Any], requested_by: str) -> int:
        row = self._row(_REQUEST, to_json(command), requested_by, CHANNEL)
        assert row is not None
        return int(row[0])

    def request_state(self, request: int) -> Request | None:
        with self._session.use() as connection:
            return _by_id(connection, request)

    def next_request(self, fence: int) -> Request | None:
        with self._session.use() as connection:
            row = connection.execute(_NEXT, (fence, fence)).fetchone()
            assert row is not None
            newest, taken = row
            if newest != fence:
                raise lease_lost(fence, newest)
            return None if taken is None else _by_id(connection, taken)

    def give_back(self, request: int) -> None:
        self._do(_GIVE_BACK, request)

    def report(self, request: int, progress: Mapping[str, Any]) -> None:
        self._do(_REPORT, to_json(dict(progress)), request)

    def finish(self, request: int, *, result: Any = None, error: Any = None) -> None:
        failed = error is not None
        failure = to_json(error) if failed else None
        self._do(_FINISH, None if failed else to_json(result), failure, failed, request)

    def withdraw_request(self, request: int) -> bool:
        return self._row(_WITHDRAW, request) is not None

    def cancel_request(self, request: int) -> None:
        self._do(_CANCEL, request)

    def cancelled(self) -> frozenset[int]:
        with self._session.use() as connection:
            return frozenset(row[0] for row in connection.execute(_CANCELLED).fetchall())

    def lose_requests(self, fence: int) -> None:
        self._do(_LOSE, to_json(encode_error(request_lost())), fence)

    def _do(self, statement: sql.SQL, *parameters: Any) -> None:
        with self._session.use() as connection:
            connection.execute(statement, parameters)

    def _row(self, statement: sql.SQL, *parameters: Any) -> tuple[Any, ...] | None:
        with self._session.use() as connection:
            return connection.execute(statement, parameters).fetchone()


def _by_id(connection: Connection, request: int) -> Request | None:
    query = statements.select(REQUESTS, statements.BY_ID)
    row = connection.execute(query, (request,)).fetchone()
    return None if row is None else REQUESTS.decode(row[0])
