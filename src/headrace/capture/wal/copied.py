"""A log whose slot somebody else has, such as a daemon that streams it: looked at in a copy."""

from __future__ import annotations

from dataclasses import dataclass

from psycopg import errors

from headrace.capture.wal.log import PeekedLog
from headrace.capture.wal.peek import peek_transactions
from headrace.capture.wal.slot import slot_fault
from headrace.capture.wal.visibility import Committed

COPY = "SELECT pg_copy_logical_replication_slot(%s, %s, true)"


@dataclass(frozen=True)
class CopiedLog(PeekedLog):
    """Tells of transactions by a slot that begins where ours does, and goes with its session.

    It changes nothing. Where the server has no slot left for it, ours is waited for.
    """

    def transactions(self, upto: int, limit: int | None = None) -> tuple[Committed, ...]:
        with self.database.connect() as connection:
            name = f"{self.slot}_{connection.info.backend_pid}"
            try:
                connection.execute(COPY, (self.slot, name))
            except errors.ConfigurationLimitExceeded:
                return super().transactions(upto, limit)
            except errors.Error as error:
                raise slot_fault(error) from error
            return peek_transactions(connection, name, self.publication, upto, limit)
