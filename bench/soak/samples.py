"""Figures that are taken again and again: memory, descriptors, files, WAL, buffers, logs."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from pathlib import Path

import psycopg

from bench.soak import processes
from bench.soak.bounds import MB
from bench.soak.site import OWNER, RUNTIME, Site

# Old generations are measured with every so manieth sample: that starts a program.
RARELY = 6
SERVER = f"""
SELECT
  (SELECT count(*) FROM pg_stat_activity WHERE usename IN ('{OWNER}', '{RUNTIME}')
    AND application_name NOT LIKE 'soak%'),
  (SELECT max(pg_wal_lsn_diff(pg_current_wal_insert_lsn(), restart_lsn)) FROM pg_replication_slots),
  (SELECT count(*) FROM pg_replication_slots),
  (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c
    WHERE c.relnamespace = to_regnamespace('headrace_capture')
    AND c.relname LIKE 'buffer%' AND c.relkind = 'r'),
  (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c
    WHERE c.relnamespace = to_regnamespace('headrace') AND c.relkind = 'r'),
  (SELECT sum(size) FROM pg_ls_waldir()),
  (SELECT count(*) FROM headrace.sources WHERE mode = 'WAL')
"""
NAMES = (
    "sessions",
    "slot_wal_mb",
    "slots",
    "buffer_mb",
    "catalog_mb",
    "wal_folder_mb",
    "wal_sources",
)
Figures = dict[str, float | None]


class Sampler(threading.Thread):
    """Takes a sample every `interval` seconds."""

    def __init__(self, site: Site, interval: float) -> None:
        super().__init__(name="sampler")
        self.samples: list[Figures] = []
        self._site = site
        self._interval = interval
        self._stop_now = threading.Event()

    def stop(self) -> None:
        self._stop_now.set()

    def run(self) -> None:
        while not self._stop_now.wait(self._interval):
            self.samples.append(self.sample(rare=len(self.samples) % RARELY == 0))

    def sample(self, *, rare: bool = True) -> Figures:
        site, daemon = self._site, self._site.daemon
        assert daemon is not None
        found: Figures = {"at": round(site.clock(), 1)}
        pid = daemon.pid
        found["daemon_rss_mb"] = processes.resident_mb(pid)
        found["daemon_descriptors"] = processes.descriptors(pid)
        found["daemon_threads"] = processes.threads(pid)
        java = daemon.java()
        if java:
            found["jvm_rss_mb"] = processes.resident_mb(java[0])
            found["jvm_descriptors"] = processes.descriptors(java[0])
            found["jvm_threads"] = processes.threads(java[0])
            if rare:
                found["jvm_old_mb"] = processes.old_generation_mb(java[0])
        found["store_files"], found["store_mb"] = _size(site.store)
        found["home_files"], found["home_mb"] = _size(site.home)
        found["temporary_folders"] = sum(1 for _ in (site.folder / "tmp").iterdir())
        logs = site.home / "log"
        found["headrace_log_mb"] = _file_mb([logs / "headrace.log", daemon.log])
        found["spark_log_mb"] = _file_mb(logs.glob("spark*"))
        found["postgres_log_mb"] = _file_mb((site.folder / "server" / "log").glob("*"))
        found |= self._server()
        return found

    def _server(self) -> Figures:
        try:
            with self._site.connect(name="soak watch") as connection:
                row = connection.execute(SERVER).fetchone()
        except psycopg.Error:
            return {}
        assert row is not None
        return {
            name: None if value is None else round(float(value) / (MB if "_mb" in name else 1), 2)
            for name, value in zip(NAMES, row, strict=True)
        }


def _size(folder: Path) -> tuple[float, float]:
    """Return the number of files below a folder, and their megabytes."""
    files, size = 0, 0
    for path, _, names in os.walk(folder):
        files += len(names)
        for name in names:
            try:
                size += (Path(path) / name).stat().st_size
            except FileNotFoundError:
                files -= 1
    return files, round(size / MB, 2)


def _file_mb(files: Iterable[Path]) -> float:
    total = 0
    for file in files:
        try:
            total += file.stat().st_size
        except FileNotFoundError:
            continue
    return round(total / MB, 3)
