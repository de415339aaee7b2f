"""One run: every subject at every rate, one after the other."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from bench.load.lag import Lags, written_until
from bench.load.observers import Observers
from bench.load.options import Options
from bench.load.report import BOUND_MS, achieves, highest_rates, line
from bench.load.shop import VIEWS, rows_of
from bench.load.subjects import (
    IncrementalViews,
    MaterializedViews,
    StreamTables,
    Subject,
    offers_pg_ivm,
)
from bench.load.usage import cores, spent, usage
from bench.load.writers import WriterProcess
from bench.tpch.postgres import settings

NOT_AVAILABLE = "not available"


def say(words: str) -> None:
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()


@dataclass
class Run:
    """What a run has found so far."""

    options: Options
    subjects: dict[str, Any] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    postgres: dict[str, str] = field(default_factory=dict)
    pg_ivm: bool = False

    def document(self) -> dict[str, Any]:
        """Return the result, ready for JSON."""
        options = self.options
        return {
            "rates": list(options.rates),
            "rate_seconds": options.rate_seconds,
            "rows": rows_of(options.orders),
            "views": list(VIEWS),
            "writers": options.writers,
            "cores": cores(),
            "postgres": self.postgres,
            "bound_ms": BOUND_MS,
            "subjects": self.subjects,
            "failures": self.failures,
        }


def run(options: Options) -> dict[str, Any]:
    """Load all subjects that were asked for; the result, ready for JSON."""
    found = Run(options)
    for subject in _subjects(options):
        _measure(found, subject)
    if "ivm" not in options.skip:
        if found.pg_ivm:
            _measure(found, IncrementalViews(options))
        else:
            found.subjects["pg_ivm"] = NOT_AVAILABLE
            say(f"pg_ivm: {NOT_AVAILABLE}")
    return found.document()


def _subjects(options: Options) -> Iterator[Subject]:
    for mode in options.capture_modes:
        yield StreamTables(mode, options)
    if "views" not in options.skip:
        yield MaterializedViews(options)


def _measure(found: Run, subject: Subject) -> None:
    """Load one subject at all rates, and compare its tables in the end."""
    name, options = subject.name, found.options
    say(f"{name}: setting up")
    with subject, WriterProcess(subject.dsn, options) as writers:
        found.pg_ivm = offers_pg_ivm(subject.dsn)
        with subject.connect() as connection:
            found.postgres = settings(connection)
        rates: list[dict[str, Any]] = []
        result: dict[str, Any] = {"rates": rates}
        found.subjects[name] = result
        if isinstance(subject, IncrementalViews):
            result["refused"] = subject.refused
        warm_up = [options.warmup] if options.warmup else []
        loads = [
            *((options.rates[0], seconds, "warm-up, ") for seconds in warm_up),
            *((rate, options.rate_seconds, "") for rate in options.rates),
        ]
        for rate, seconds, what in loads:
            seen = _load(subject, writers, rate, seconds)
            say(f"{name}: {what}{line(seen)}")
            if not what:
                rates.append(seen)
            found.failures += [f"{name} at {rate}/s: {one}" for one in seen["failures"]]
            if seen["failures"]:
                break
            if seen["lag_ms"]["unserved"]:
                say(f"{name}: not caught up within {options.drain:g} s, higher rates left out")
                break
        result["highest_rate"] = highest_rates(rates)
        differences = subject.differences()
        if differences is not None:
            result["equal"] = not differences
            found.failures += [f"{name}: {one}" for one in differences]
            say(f"{name}: {'; '.join(differences) or 'equal to PostgreSQL'}")


def _load(subject: Subject, writers: WriterProcess, rate: int, seconds: float) -> dict[str, Any]:
    """Write at a rate, and observe; what was seen, ready for JSON."""
    options = subject.options
    observers = Observers(subject.dsn, subject.tables, options.marks)
    with observers.watching(options.drain):
        before, refreshed = _usage(subject, writers), subject.refreshes()
        written = writers.write(rate, seconds)
        after, until = _usage(subject, writers), subject.taken_until()
        refreshed = subject.refreshes() - refreshed
    took = written["ended"] - written["began"]
    by_table = observers.lags()
    lags = sum(by_table.values(), Lags(()))
    ledger = written.pop("ledger")
    taken = None if until is None else written_until(ledger, until)
    failures = [*written.pop("errors"), *observers.errors(), *subject.problems()]
    done = round(written["written"] / took, 1)
    return {
        "rate": rate,
        "seconds": round(took, 2),
        "written": written["written"],
        "achieved_rate": done,
        "achieved": achieves(done, rate),
        **{
            key: written[key]
            for key in (
                "transactions",
                "transaction_rows",
                "skipped_transactions",
                "largest_backlog_s",
                "commit_ms",
            )
        },
        "taken_in_per_second": None if taken is None else round(taken / took, 1),
        "lag_ms": lags.document(),
        "lag_ms_by_table": {name: one.document() for name, one in by_table.items()},
        "cpu_seconds": spent(before, after),
        "refreshes": dict(refreshed),
        "failures": failures,
    }


def _usage(subject: Subject, writers: WriterProcess) -> dict[str, float]:
    return usage(subject.home, writers.pid, subject.daemon_pid)
