"""The keys that programs rely on."""

from __future__ import annotations

import json
from dataclasses import replace

from headrace.catalog.records import Effort, RefreshMode
from headrace.cli.documents import (
    explanation_document,
    listed_document,
    receipt_document,
    refresh_document,
    status_document,
)
from headrace.observe.capture_status import SourceCapture
from headrace.refresh.cost_history import outlook
from headrace.refresh.strategy import RefreshCosts
from tests.cli.examples import explanation, receipt, refresh, table

LISTED = ["name", "status", "refresh_mode", "schedule", "options"]
REFRESH = [
    *("table", "epoch", "mode", "reason", "rows_inserted", "rows_deleted", "seconds", "phases"),
    *("spark_jobs", "started_at", "finished_at", "versions", "stages", "error"),
    *("iterations", "strata_skipped", "group", "effort"),
]


def test_tables() -> None:
    assert list(listed_document(table())) == LISTED
    document = status_document(table(), refresh())
    assert list(document) == [
        *(*LISTED, "reason", "held", "epoch", "as_of", "lag"),
        *("lag_own", "lag_inherited", "blocked_by", "failures", "tier"),
        *("tier_in_force", "reads_per_minute", "next_tier", "next_tier_at", "notices"),
        *("stratum", "scc_id", "last_iterations", "group", "group_members", "edges"),
        *("capture", "last_refresh"),
    ]
    assert (document["lag"], document["as_of"]) == (90.0, "2026-03-01T12:00:00+00:00")
    assert list(document["last_refresh"]) == REFRESH
    never = status_document(table(as_of=None, lag=None, epoch=0))
    assert (never["as_of"], never["lag"], never["last_refresh"]) == (None, None, None)
    json.dumps([document, never])


def test_groups_and_captures_are_named() -> None:
    capture = (SourceCapture("public.t", "WAL", "headrace_1", "active"),)
    names = {"r1": "public.totals", "r2": "public.counts"}
    shown = table(group=1, group_members=("public.counts", "public.totals"), capture=capture)
    document = status_document(shown, refresh(group=("r2", "r1", "gone")), names)
    assert document["group_members"] == ["public.counts", "public.totals"]
    assert document["capture"] == [
        {"source": "public.t", "mode": "WAL", "slot": "headrace_1", "decoder": "active"}
    ]
    assert document["last_refresh"]["group"] == ["public.counts", "public.totals"]


def test_refreshes() -> None:
    document = refresh_document("public.totals", refresh())
    assert (document["table"], document["seconds"]) == ("public.totals", 0.187)
    assert list(document["phases"]) == ["cut", "compute"]
    assert document["effort"] is None
    effort = Effort({"r1": 5}, 100, 0.1, incremental=0.2, full=3.0)
    assert refresh_document("a", replace(refresh(), effort=effort))["effort"] == {
        "changed": {"r1": 5},
        "stored": 100,
        "seconds": 0.1,
        "incremental": 0.2,
        "full": 3.0,
        "warm": True,
        "first": False,
    }


def test_receipts() -> None:
    document = receipt_document("public.totals", receipt(equal=False))
    assert list(document) == [
        *(
            "table",
            "equal",
            "oracle",
            "epoch",
            "rows",
            "missing",
            "surplus",
            "tolerance",
            "compared",
        ),
        *("verified_at", "covered"),
    ]
    assert list(document["compared"]) == ["recomputed a.b", "served a.b"]
    assert document["compared"]["recomputed a.b"]["surplus"] == 1
    json.dumps(document)


def test_explanations() -> None:
    document = explanation_document(explanation())
    assert list(document) == [
        *("name", "query", "columns", "key", "index", "partition_by", "plan", "steps", "stages"),
        *("notices", "stratum", "scc_id", "group", "group_others", "group_declared"),
        *("edges", "outlook"),
    ]
    assert document["columns"] == [{"name": "n", "type": "bigint", "kept_as": "bigint"}]
    assert list(document["stages"][0]) == ["relation", "mode", "reason", "reads", "read_by", "sql"]
    assert document["outlook"] is None
    assert "shared" not in str(explanation())
    (stage,) = explanation().stages
    shared = replace(stage, relation="r1h1", read_by=(("r1h2", 1), ("public.totals", 2)))
    text = str(replace(explanation(), stages=(shared, stage)))
    assert "  r1h1, shared by 3 places: r1h2 (1), public.totals (2)" in text.splitlines()
    known = outlook(RefreshMode.AUTO, frozenset({"r1"}), 100_000, RefreshCosts())
    document = explanation_document(replace(explanation(), outlook=known))
    assert list(document["outlook"]) == ["mode", "stored", "full", "incremental", "most_rows"]
    assert (document["outlook"]["mode"], document["outlook"]["most_rows"]) == ("AUTO", 55_000)
    json.dumps(document)
