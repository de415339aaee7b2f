"""Another consumer of a replication slot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from headrace.capture.wal.publication import PUBLICATION


@contextmanager
def streaming(dsn: str, application: psycopg.Connection[Any], slot: str) -> Iterator[int]:
    """Another consumer of the slot; its process id."""
    address = psycopg.conninfo.make_conninfo(dsn, replication="database")
    connection = psycopg.pq.PGconn.connect(address.encode())
    command = (
        f"START_REPLICATION SLOT {slot} LOGICAL 0/0"
        f" (proto_version '1', publication_names '{PUBLICATION}')"
    )
    try:
        assert connection.exec_(command.encode()).status == psycopg.pq.ExecStatus.COPY_BOTH
        yield connection.backend_pid
    finally:
        application.execute("SELECT pg_terminate_backend(%s, 10000)", (connection.backend_pid,))
        connection.finish()
