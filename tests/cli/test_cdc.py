"""The command about change capture, against a project in memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.cli.commands.cdc import size
from tests.cli.conftest import Headrace
from tests.cli.examples import LONG, MemoryProject


def test_sources_and_what_is_wrong(project: MemoryProject, headrace: Headrace) -> None:
    lines = headrace("cdc").out.splitlines()
    assert [lines[0].split(), lines[2].split(), lines[3].split()] == [
        ["source", "status", "mode", "request", "behind", "cut", "level"],
        ["public.orders", "ACTIVE", "wal", "(key)", "auto", "3", "MB", "4", "s", "fine"],
        ["crm.public.customer", "ACTIVE", "trigger", "wal", "812", "B", "-", "warning"],
    ]
    # What the alert says is not said twice.
    assert lines[4:] == [
        "crm.public.customer: warning: captured by triggers, not from the log: wal_level is replica"
    ]


def test_why_a_source_stays_with_triggers(project: MemoryProject, headrace: Headrace) -> None:
    _, customer = project.sources
    project.sources = (replace(customer, requested_mode="auto", level="fine", alert=None),)
    lines = headrace("cdc").out.splitlines()
    assert lines[-1] == "crm.public.customer: not captured from WAL: wal_level is replica"


def test_for_programs(project: MemoryProject, headrace: Headrace) -> None:
    first, second = headrace("cdc", "--json").document["sources"]
    assert first == {
        "source": "public.orders",
        "database": "home",
        "mode": "WAL",
        "requested_mode": "auto",
        "mode_reason": None,
        "status": "ACTIVE",
        "lag_bytes": 3 * 2**20,
        "lag": 4.0,
        "position": "0/16B3748",
        "level": "fine",
        "alert": None,
        "slot": "headrace_1f2e3d4c",
        "identity": "key",
        "append_only": None,
        "answers": True,
    }
    assert (second["lag"], second["level"]) == (None, "warning")


def test_it_fits_into_80_columns(
    project: MemoryProject, headrace: Headrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    long = replace(
        project.sources[0],
        source=LONG,
        status="INITIALIZING",
        mode="TRANSITIONING",
        requested_mode="trigger",
    )
    project.sources = (replace(long, lag_bytes=999 * 2**20, level="critical"),)
    lines = headrace("cdc").out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert lines[2].split()[-6:] == ["trigger", "999", "MB", "4", "s", "critical"]
    assert "".join(line.split()[0] for line in lines[2:]) == LONG


def test_nothing_is_captured_yet(project: MemoryProject, headrace: Headrace) -> None:
    project.sources = ()
    result = headrace("cdc")
    assert (result.code, result.out) == (0, "")
    assert "yet" in result.error
    assert headrace("cdc", "--json").document == {"sources": []}


def test_what_a_dba_runs(project: MemoryProject, headrace: Headrace) -> None:
    result = headrace("cdc", "--print-sql", "orders", "crm.public.customer")
    assert result.out == project.cdc_sql()
    assert project.calls[0] == ("cdc_sql", "orders", "crm.public.customer", None)
    assert headrace("cdc", "--print-sql", "--json").document == {"sql": project.cdc_sql()}
    refused = headrace("cdc", "orders")
    assert refused.code == 2
    assert "--print-sql" in refused.error


def test_buffers_are_converted(project: MemoryProject, headrace: Headrace) -> None:
    assert headrace("cdc", "--convert").out == "converted: public.orders\n"
    assert headrace("cdc", "--convert", "--json").document == {"converted": ["public.orders"]}
    assert project.calls.count(("convert_buffers", None)) == 2
    assert headrace("cdc", "--convert", "--print-sql").code == 2


def test_sizes() -> None:
    sizes = (0, 1023, 1024, 2**20 - 1, 2**20, 5000 * 2**20, 3000 * 2**30)
    assert [size(one) for one in sizes] == [
        "0 B",
        "1,023 B",
        "1 kB",
        "1,023 kB",
        "1 MB",
        "4 GB",
        "3,000 GB",
    ]
