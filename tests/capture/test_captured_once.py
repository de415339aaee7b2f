"""Every way to change a row is captured, once."""

from __future__ import annotations

import psycopg
import pytest

from headrace.source.connection import Database
from tests.capture.follower import Follower

pytestmark = pytest.mark.postgres

Application = psycopg.Connection[tuple[object, ...]]


def test_insert_update_delete(database: Database, application: Application) -> None:
    application.execute("CREATE TABLE t (a integer, b text)")
    application.execute("INSERT INTO t VALUES (1, 'x'), (1, 'x'), (NULL, NULL)")
    follower = Follower(database, "t")
    assert follower.tick().copied == {"t": "the table was never copied"}
    assert follower.bag("t") == {(1, "x"): 2, (None, None): 1}
    assert follower.tick().skipped
    application.execute("INSERT INTO t VALUES (2, 'y'), (1, 'x')")
    application.execute("DELETE FROM t WHERE ctid = (SELECT min(ctid) FROM t)")
    application.execute("UPDATE t SET b = 'z' WHERE a IS NULL")
    tick = follower.tick()
    assert tick.copied == {}
    assert tick.changed == 5
    assert follower.bag("t") == {(1, "x"): 2, (2, "y"): 1, (None, "z"): 1}
    assert follower.tick().skipped
