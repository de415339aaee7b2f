"""Requests that keep coming and refreshes that are due take turns."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import psycopg
import pytest

import headrace
from headrace.catalog.records import Request
from headrace.daemon import refreshes
from headrace.daemon.context import DaemonContext, ignore_report
from headrace.daemon.loop import DaemonLoop
from headrace.daemon.requests import RequestExecutor
from headrace.daemon.wakeup import WakeupListener
from headrace.graph.live import LiveGraph
from headrace.lifecycle.planned_table import TableRequest
from headrace.schedule.state import ScheduleState
from tests.daemon.running import eventually
from tests.lifecycle.made import put_tables

pytestmark = pytest.mark.postgres
QUERY = "SELECT customer, sum(amount) AS amount FROM orders GROUP BY customer"
REQUESTS = 3


def test_what_is_due_is_refreshed_before_the_next_request(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began: list[str] = []
    moment = datetime.now(UTC)

    def now() -> datetime:
        """Return a moment at which every schedule has come round."""
        nonlocal moment
        moment += timedelta(hours=1)
        return moment

    def perform(self: RequestExecutor, request: Request) -> bool:
        began.append("request")
        self._engine.catalog.finish(request.id)
        return True

    def refresh(*_: object) -> refreshes.Lines:
        began.append("refresh")
        return {}

    monkeypatch.setattr(DaemonLoop, "_warm_up", lambda self: None)
    monkeypatch.setattr(RequestExecutor, "perform", perform)
    monkeypatch.setattr(refreshes, "refresh_group", refresh)
    with psycopg.connect(dsn, autocommit=True) as sql:
        sql.execute("CREATE TABLE orders (customer bigint, amount bigint)")
        sql.execute("INSERT INTO orders VALUES (1, 1)")
    with headrace.connect(dsn=dsn, home=tmp_path) as project:
        put_tables(project, TableRequest("totals", QUERY, schedule="1s"))
        engine = project._engine
        for _ in range(REQUESTS):
            engine.catalog.request({"verb": "suspend"}, "someone")
        with engine.serving(0) as lease, WakeupListener(engine.database) as listener:
            context = DaemonContext(engine, lease, listener, ignore_report, ScheduleState(), now)
            loop = DaemonLoop(context, LiveGraph(), threading.Event())

            def all_performed() -> bool:
                # Only the first of several requests is announced while it waits.
                loop._tick(asked=not began)
                return began.count("request") == REQUESTS

            loop._reload()
            eventually(all_performed, lambda: began)
            loop._end()
    places = [place for place, one in enumerate(began) if one == "request"]
    between = [began[first:last] for first, last in pairwise(places)]
    assert all("refresh" in one for one in between), began
