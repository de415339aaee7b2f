"""A daemon that hangs is seen from outside; one that is busy is not taken for that."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

import headrace
from headrace.catalog.heartbeat import last_heartbeat
from headrace.daemon import heartbeat as heartbeat_module
from headrace.daemon.ingester import SourceIngesters
from headrace.daemon.loop import DaemonLoop
from headrace.observe import heartbeat as judged
from tests.daemon.running import Running, Up, eventually

pytestmark = pytest.mark.postgres


@pytest.fixture
def project(dsn: str, tmp_path: Path) -> Iterator[headrace.Headrace]:
    with headrace.connect(dsn=dsn, home=tmp_path) as opened:
        yield opened


@pytest.fixture
def other(project: headrace.Headrace, dsn: str, tmp_path: Path) -> Iterator[headrace.Headrace]:
    """The same project, opened once more."""
    with headrace.connect(dsn=dsn, home=tmp_path) as opened:
        yield opened


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat_module, "INTERVAL", 0.02)
    monkeypatch.setattr(judged, "PAUSE", 0.0)


def level(project: headrace.Headrace) -> str:
    return next(one.level for one in project.health_check().checks if one.area == "daemon")


def test_a_process_that_is_stopped(project: headrace.Headrace, dsn: str, tmp_path: Path) -> None:
    with Up(tmp_path, dsn) as up, psycopg.connect(dsn, autocommit=True) as sql:
        up.until_serving()
        up.until(lambda: project._engine.catalog.heartbeat() is not None)
        assert level(project) == "fine"
        up.process.send_signal(signal.SIGSTOP)
        # As if time had passed; the process can write no other heartbeat.
        eventually(
            lambda: (
                sql.execute(
                    "UPDATE headrace.daemon_heartbeat SET beat_at = beat_at - '1h'::interval"
                )
                and level(project) == "critical"
            )
        )
        up.process.send_signal(signal.SIGCONT)
        up.until(lambda: level(project) == "fine")


def test_a_loop_that_is_stuck(
    project: headrace.Headrace, other: headrace.Headrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = threading.Event()
    tick = DaemonLoop._check_views_and_tiers

    def look_around(self: DaemonLoop) -> None:
        stuck.wait()
        tick(self)

    monkeypatch.setattr(judged, "SILENCE", timedelta(seconds=1))
    monkeypatch.setattr(DaemonLoop, "_check_views_and_tiers", look_around)
    try:
        with Running(project) as running:
            running.until(lambda: level(other) == "critical")
            stuck.set()
            running.until(lambda: level(other) == "fine")
    finally:
        stuck.set()


def test_a_long_ingest_and_a_long_publish_are_not_stuck(
    project: headrace.Headrace,
    other: headrace.Headrace,
    dsn: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended = threading.Event()
    take = SourceIngesters.take

    def ingest(self: SourceIngesters, *args: object, **options: object) -> bool:
        # A publish in another thread holds the catalog's connection meanwhile.
        with self._context.engine.catalog._session.use():  # type: ignore[attr-defined]
            ended.wait()
        return take(self, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(SourceIngesters, "take", ingest)
    try:
        with Running(project) as running, psycopg.connect(dsn, autocommit=True) as sql:

            def in_round() -> timedelta:
                beat = last_heartbeat(sql)
                known = beat is not None and beat.busy == "taking in changes"
                return beat.in_round if beat is not None and known else timedelta(0)

            running.until(lambda: in_round() > timedelta(seconds=1))
            monkeypatch.setattr(judged, "SILENCE", timedelta(seconds=1))
            running.until(lambda: level(other) == "fine")
            ended.set()
    finally:
        ended.set()
