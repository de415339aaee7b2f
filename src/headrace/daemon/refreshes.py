"""Refreshes in parallel: starting groups, collecting results, retrying or suspending failures."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from headrace.catalog import State
from headrace.catalog.records import Refresh, StreamTable
from headrace.daemon.context import ENDING, DaemonContext, logger
from headrace.daemon.failing import stop_failing
from headrace.engine import HOME
from headrace.errors import HeadraceError, Unavailable, internal_error
from headrace.graph import upstream
from headrace.ingest.ingest import databases_of
from headrace.refresh.refresh import refresh_group
from headrace.schedule.due import Due
from headrace.schedule.quotas import Claim, Job, pick
from headrace.schedule.retry import after_failure
from headrace.settings import Settings

Lines = dict[str, Refresh]

MOST_THREADS = 1 << 30


@dataclass(frozen=True)
class Running:
    """A group that is being refreshed over a state, and the database whose workers it uses."""

    relations: tuple[str, ...]
    database: int
    state: State


class Refreshes:
    """The workers and the groups they refresh; used by the daemon's own thread."""

    def __init__(self, context: DaemonContext) -> None:
        self._context = context
        # Threads are made as they are needed: `start` keeps to the number of workers.
        self._pool = ThreadPoolExecutor(MOST_THREADS, "headrace-refresh")
        self._running: dict[Future[Lines], Running] = {}

    @property
    def relations(self) -> frozenset[str]:
        """The tables that are being refreshed."""
        return frozenset(name for running in self._running.values() for name in running.relations)

    def start(self, waiting: Iterable[Due], state: State, workers: int) -> bool:
        """Start as many groups as there are workers for; return whether any was started."""
        context = self._context
        groups_by_name = {group.relations[0]: group for group in waiting}
        jobs = [
            Job(name, _database_of(state, group.relations), group.tier, group.since)
            for name, group in groups_by_name.items()
        ]
        busy = [running.database for running in self._running.values()]
        claims = {
            database.id: Claim(database.share, database.quota, database.priority)
            for database in state.databases
        }
        chosen = pick(jobs, busy, workers, claims)
        for job in chosen:
            relations = groups_by_name[job.name].relations
            context.memory.attempted(relations, context.now())
            context.engine.hold(state)
            future = self._pool.submit(
                refresh_group, context.engine, state, relations, context.lease.fence
            )
            self._running[future] = Running(relations, job.database, state)
            future.add_done_callback(lambda _: context.listener.wake())
        return bool(chosen)

    def collect(self, state: State, settings: Settings) -> bool:
        """Handle the refreshes that ended since the last call; return whether any did."""
        ended = [future for future in self._running if future.done()]
        for future in ended:
            running = self._running.pop(future)
            self._context.engine.release(running.state)
            self._context.memory.ended.update(dict.fromkeys(running.relations, self._context.now()))
            error = future.exception()
            if error is None:
                self._context.memory.found(running.relations)
                self._report(future.result(), state)
            else:
                self._failed(running, error, settings)
        return bool(ended)

    def end(self) -> None:
        """Wait for the workers."""
        self._pool.shutdown(wait=True)

    def _report(self, lines: Lines, state: State) -> None:
        for relation, line in lines.items():
            table = state.origin(relation)
            if table is not None:
                seconds = (line.finished_at - line.started_at).total_seconds()
                self._context.report(
                    f"{table.schema}.{table.name}: {line.mode} to epoch {line.epoch},"
                    f" +{line.rows_inserted} -{line.rows_deleted} in {seconds:.2f} s"
                )

    def _failed(self, running: Running, error: BaseException, settings: Settings) -> None:
        """Schedule a retry, or suspend the tables that failed too often."""
        context = self._context
        if not isinstance(error, HeadraceError):
            logger.error("a refresh failed", exc_info=error)
            error = internal_error("refresh a group", error)
        state = context.engine.catalog.state()
        tables = [t for t in state.stream_tables if t.relation in running.relations]
        context.failed(", ".join(f"{table.schema}.{table.name}" for table in tables), error)
        if error.code in ENDING:
            raise error
        if isinstance(error, Unavailable):
            failures = context.memory.missed(running.relations)
        else:
            context.memory.found(running.relations)
            failures = max((table.failures for table in tables), default=0)
        wait = after_failure(type(error), max(failures, 1), settings.max_failures, context.random)
        if wait is None:
            stop_failing(context.engine, _worst(tables), error.message, context.lease.fence)
        else:
            retry_at = dict.fromkeys(running.relations, context.now() + wait)
            context.memory.retry_at.update(retry_at)


def _database_of(state: State, relations: Iterable[str]) -> int:
    """Return the database of the sources of a group; the home database if there are several."""
    members = frozenset(relations)
    below = {
        name
        for table in state.stream_tables
        if table.relation in members
        for upstream_table in upstream(state.stream_tables, table)
        for name in upstream_table.inputs
    }
    numbers = databases_of(state, frozenset(below))
    return numbers[0] if len(numbers) == 1 else HOME


def _worst(tables: list[StreamTable]) -> list[StreamTable]:
    """Return the tables that failed most often; others of their group only waited for them."""
    most = max((table.failures for table in tables), default=0)
    return [table for table in tables if table.failures == most]
