"""The outcome of a demo as a JSON document; all times in seconds."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from headrace.cli.documents import receipt_document
from headrace.demo.outcome import Outcome, Timed, middle, phases
from headrace.demo.samples import pick, tell
from headrace.demo.views import DemoView

if TYPE_CHECKING:
    from pathlib import Path


def demo_document(outcome: Outcome, kept: Path | None) -> dict[str, Any]:
    return {
        "equal": outcome.equal,
        "seconds": outcome.seconds,
        "home": None if kept is None else str(kept),
        "shop": dict(outcome.opened.shop.rows),
        "written": asdict(outcome.written),
        "rounds": [
            {
                "round": one.number,
                "at": one.at,
                "written": asdict(one.written),
                "refreshes": [_timed(timed, one.number) for timed in one.timed],
            }
            for one in outcome.rounds
        ],
        "tables": [_table(outcome, view) for view in outcome.views],
    }


def _timed(timed: Timed, number: int) -> dict[str, Any]:
    sample = pick(timed.samples, number)
    return {
        "table": timed.view.table,
        "mode": timed.refresh.mode,
        "rows_inserted": timed.refresh.rows_inserted,
        "rows_deleted": timed.refresh.rows_deleted,
        "seconds": timed.seconds,
        "spark_jobs": timed.refresh.spark_jobs,
        "sample": None if sample is None else tell(timed.view, sample),
    }


def _table(outcome: Outcome, view: DemoView) -> dict[str, Any]:
    (created,) = (one for one in outcome.created if one.view == view)
    (checked,) = (one for one in outcome.checked if one.view == view)
    idle = [one for one in outcome.idle if one.view == view]
    live = outcome.live(view)
    refreshes = [pair.refresh for pair in outcome.pairs_of(view)]
    full = [pair.full for pair in outcome.pairs_of(view)]
    return {
        "table": view.table,
        "query": view.query,
        "rows": checked.receipt.rows,
        "create_seconds": created.seconds,
        "live_refreshes": len(live),
        "live_median": middle(live),
        "idle_seconds": [one.seconds for one in idle],
        "idle_spark_jobs": sum(one.refresh.spark_jobs for one in idle),
        "refresh_seconds": [one.seconds for one in refreshes],
        "refresh_median": middle(refreshes),
        "refresh_phases": phases(refreshes),
        "full_seconds": [one.seconds for one in full],
        "full_median": middle(full),
        "full_over_refresh": outcome.ratio(view),
        "verify": receipt_document(view.table, checked.receipt),
    }
