"""The catalog in schema `headrace` of the home database."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, LiteralString, TypeVar

from psycopg import sql

from headrace.catalog import alert, statements
from headrace.catalog.catalog import Change, Connection, Transaction, lease_lost
from headrace.catalog.codec import (
    EPOCHS,
    RECEIPTS,
    REFRESHES,
    STATE,
    STATE_BY_TABLE,
    TICKS,
    TIERS,
    Codec,
    decode_effort,
    to_json,
)
from headrace.catalog.migrate import migrate, require_catalog
from headrace.catalog.postgres_requests import PostgresRequests
from headrace.catalog.prune import prune
from headrace.catalog.records import (
    CutRecord,
    Effort,
    Lease,
    Receipt,
    Refresh,
    StratumTicks,
    TierInForce,
)
from headrace.catalog.session import Session
from headrace.catalog.state import State
from headrace.catalog.status_alerts import Condition, status_alerts
from headrace.catalog.writer_lease import WriterLease

R = TypeVar("R")


class PostgresCatalog(PostgresRequests):
    """Implements `Catalog` on one session of PostgreSQL; `connect` gives autocommit connections."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        super().__init__(Session(connect))
        self._lease = WriterLease(self._session)
        # The last state's records by their rows' text: most rows are the same the next time, and
        # comparing text is some ten times faster than decoding it.
        self._known: dict[tuple[Any, ...], Any] = {}

    @staticmethod
    def open(connect: Callable[[], Connection], *, create: bool = True) -> PostgresCatalog:
        """Return the catalog, migrated first; create a missing one, or raise `no-project`."""
        catalog = PostgresCatalog(connect)
        try:
            with catalog._session.use() as connection:
                if not create:
                    require_catalog(connection)
                migrate(connection)
        except BaseException:
            catalog.close()
            raise
        return catalog

    def state(self) -> State:
        with self._session.use() as connection:
            lines = connection.execute(statements.select_state()).fetchall()
            settings: dict[str, Any] = {}
            records: dict[str, list[Any]] = {codec.table: [] for codec in STATE}
            records_by_line: dict[tuple[Any, ...], Any] = {}
            for line in lines:
                table, text = line
                if table == "settings":
                    settings = json.loads(text)
                    continue
                record = self._known.get(line)
                if record is None:
                    record = STATE_BY_TABLE[table].decode(json.loads(text))
                records_by_line[line] = record
                records[table].append(record)
            self._known = records_by_line
        return State.of(
            records["databases"],
            records["relations"],
            records["sources"],
            records["stream_tables"],
            settings,
        )

    def next_epoch(self) -> int:
        return self._value(statements.NEXT_EPOCH)

    def commit(
        self,
        change: Change,
        *,
        fence: int,
        apply: Callable[[Transaction], None] | None = None,
    ) -> None:
        prepared = tuple(statements.of_change(change))
        with self._session.use() as connection, connection.transaction():
            row = connection.execute(statements.FENCE).fetchone()
            assert row is not None
            newest, stopped, attached = row
            if newest != fence:
                raise lease_lost(fence, newest)
            conditions = [Condition.of(*fields) for fields in stopped or ()]
            aliases = {int(number): alias for number, alias in (attached or {}).items()}
            alerts = status_alerts(conditions, aliases, change)
            # COPY is not possible in a pipeline, so it ends before `apply`.
            with connection.pipeline():
                for statement, parameters in prepared:
                    connection.execute(statement, parameters)
                alert.notify(connection, alerts)
            if apply is not None:
                apply(connection)
        alert.log(alerts)

    def lease(
        self, holder: str, wait: float = 0.0, *, serves: bool = False
    ) -> AbstractContextManager[Lease]:
        return self._lease.hold(holder, wait, serves)

    def cuts(self, epoch: int) -> tuple[CutRecord, ...]:
        return self._select(EPOCHS, statements.CUTS_AT, epoch)

    def refreshes(self, table: str | None = None, limit: int | None = 100) -> tuple[Refresh, ...]:
        return self._latest(REFRESHES, table, limit)

    def efforts(self, table: str, limit: int) -> tuple[tuple[str, Effort], ...]:
        with self._session.use() as connection:
            rows = connection.execute(statements.EFFORTS, (table, limit)).fetchall()
        return tuple((mode, decode_effort(effort)) for mode, effort in rows)

    def strata_ticks(self) -> tuple[StratumTicks, ...]:
        return self._select(TICKS, statements.BY_STRATUM)

    def count_ticks(self, ticks: Iterable[StratumTicks]) -> None:
        rows = to_json([TICKS.encode(stratum_ticks) for stratum_ticks in ticks])
        with self._session.use() as connection:
            connection.execute(statements.COUNT_TICKS, (rows,))

    def prune_history(self, tables: Iterable[str], before: datetime, keep: int) -> int:
        with self._session.use() as connection:
            return prune(connection, list(tables), before, keep)

    def tiers(self) -> tuple[TierInForce, ...]:
        return self._select(TIERS, statements.BY_RELATION)

    def note_tiers(self, tiers: Iterable[TierInForce]) -> None:
        rows = to_json([TIERS.encode(tier) for tier in tiers])
        with self._session.use() as connection, connection.transaction():
            connection.execute(statements.FORGET_TIERS)
            connection.execute(statements.NOTE_TIERS, (rows,))

    def receipts(self, table: str | None = None, limit: int | None = 100) -> tuple[Receipt, ...]:
        return self._latest(RECEIPTS, table, limit)

    def set(self, name: str, value: Any) -> None:
        with self._session.use() as connection:
            if value is None:
                connection.execute(statements.UNSET_SETTING, (name,))
            else:
                connection.execute(statements.SET_SETTING, (name, to_json(value)))

    def close(self) -> None:
        self._session.close()

    def _latest(self, codec: Codec[R], table: str | None, limit: int | None) -> tuple[R, ...]:
        if table is None:
            return self._select(codec, statements.LATEST, limit)
        return self._select(codec, statements.LATEST_OF, table, limit)

    def _select(self, codec: Codec[R], end: LiteralString, *parameters: Any) -> tuple[R, ...]:
        with self._session.use() as connection:
            rows = connection.execute(statements.select(codec, end), parameters).fetchall()
        return tuple(codec.decode(row) for (row,) in rows)

    def _value(self, statement: sql.SQL, *parameters: Any) -> int:
        with self._session.use() as connection:
            row = connection.execute(statement, parameters).fetchone()
        assert row is not None
        return int(row[0])
