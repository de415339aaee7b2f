"""The payload of an alert, and the alerts of a commit."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.catalog import Change, PostgresCatalog, Transaction
from headrace.catalog.alert import CONDITIONS, EVENTS, LARGEST, Alert, qualified
from headrace.catalog.records import DatabaseRecord, Source, Status, StreamTable
from headrace.catalog.status_alerts import MESSAGES, Condition, status_alerts
from headrace.lifecycle.names import name_parts
from tests.alerts import FIELDS, crossings_so_far, heard_so_far, listen
from tests.catalog import examples

WHY = "the value is 4711"
ACTIVE = replace(examples.TABLE, status=Status.ACTIVE, reason=None, held=False)
SUSPENDED = replace(ACTIVE, status=Status.SUSPENDED, reason=WHY)
ERROR = replace(ACTIVE, status=Status.ERROR, reason=WHY)
SOURCE = replace(examples.SOURCE, status=Status.ACTIVE, reason=None)
SHOWN = 'shop."Totals"'
SOURCE_SHOWN = 'shop."or""ders.ü"'
STOPPED = replace(SOURCE, status=Status.SUSPENDED, reason=WHY)


class TestPayload:
    def test_it_has_one_shape(self) -> None:
        alert = Alert("table", "shop.Übersicht", "critical", "suspended", "see it", WHY)
        assert list(json.loads(alert.payload())) == FIELDS
        assert json.loads(alert.payload())["name"] == "shop.Übersicht"
        assert WHY not in alert.payload()

    @given(st.text(max_size=63), st.text(max_size=63), st.text(max_size=63), st.integers(0, 9000))
    def test_it_is_never_too_long(self, alias: str, schema: str, name: str, length: int) -> None:
        message = "é" * length
        alert = Alert("source", f"{alias}.{schema}.{name}", "warning", "fell-back", message)
        text = alert.payload()
        assert len(text.encode()) <= LARGEST
        assert json.loads(text)["name"] == alert.name
        assert json.loads(text)["message"] in (message, None)

    @given(st.lists(st.text(min_size=1, max_size=63), min_size=2, max_size=3))
    def test_names_can_be_parsed(self, parts: list[str]) -> None:
        assert name_parts(qualified(*parts)) == parts

    def test_names_are_quoted_where_needed(self) -> None:
        assert qualified("public", "order_lines2") == "public.order_lines2"
        assert qualified("a.b", "c") == '"a.b".c'
        assert qualified("a", "b.c") == 'a."b.c"'
        assert qualified("Shop", 'a"b', "2nd") == '"Shop"."a""b"."2nd"'

    def test_what_fits_is_sent(self) -> None:
        def alert(message: str) -> Alert:
            return Alert("source", "public.t", "warning", "fell-back", message)

        fits = "x" * (LARGEST - len(alert("").payload()))
        assert json.loads(alert(fits).payload())["message"] == fits
        assert json.loads(alert(fits + "x").payload())["message"] is None

    def test_others_than_the_known_ones_cannot_be_made(self) -> None:
        with pytest.raises(ValueError, match="no alert 'late' about a source"):
            Alert("source", "public.t", "warning", "late", "")
        assert not CONDITIONS & EVENTS and MESSAGES.keys() <= CONDITIONS


class TestCommit:
    """Pure: what is stopped before, a change, and the alerts."""

    @pytest.mark.parametrize(
        ("before", "after", "alerts"),
        [
            ("ACTIVE", "ACTIVE", []),
            ("ACTIVE", "SUSPENDED", ["suspended critical"]),
            ("ACTIVE", "ERROR", ["error critical"]),
            ("INITIALIZING", "SUSPENDED", ["suspended critical"]),
            ("SUSPENDED", "SUSPENDED", []),
            ("ERROR", "ERROR", []),
            ("SUSPENDED", "ACTIVE", ["suspended fine"]),
            ("ERROR", "ACTIVE", ["error fine"]),
            ("ERROR", "INITIALIZING", ["error fine"]),
            ("ERROR", "SUSPENDED", ["suspended critical", "error fine"]),
            ("SUSPENDED", None, ["suspended fine"]),
            ("ACTIVE", None, []),
            (None, "SUSPENDED", ["suspended critical"]),
        ],
    )
    def test_every_change_of_status(
        self, before: str | None, after: str | None, alerts: list[str]
    ) -> None:
        known = [
            Condition("table", "rtotals", SHOWN, before.lower())
            for _ in range(before in ("SUSPENDED", "ERROR"))
            if before
        ]
        change = Change(remove=(ACTIVE,))
        if after is not None:
            change = Change(put=(replace(ACTIVE, status=Status(after)),))
        found = status_alerts(known, {}, change)
        assert [f"{one.code} {one.level}" for one in found] == alerts
        assert {one.name for one in found} <= {SHOWN}

    def test_a_rebuild_under_another_relation(self) -> None:
        known = [Condition("table", "rold", SHOWN, "suspended")]
        old = replace(SUSPENDED, relation="rold")
        (cleared,) = status_alerts(known, {}, Change(put=(ACTIVE,), remove=(old,)))
        assert (cleared.level, cleared.name) == ("fine", SHOWN)
        assert status_alerts(known, {}, Change(put=(SUSPENDED,), remove=(old,))) == ()

    def test_a_table_that_is_renamed_while_it_is_suspended(self) -> None:
        known = [Condition("table", "rtotals", SHOWN, "suspended")]
        found = status_alerts(known, {}, Change(put=(replace(SUSPENDED, name="sums"),)))
        assert [(one.name, one.level) for one in found] == [
            ("shop.sums", "critical"),
            (SHOWN, "fine"),
        ]

    def test_names_of_sources_in_attached_databases(self) -> None:
        (one,) = status_alerts((), {1: "crm"}, Change(put=(STOPPED,)))
        assert one.name == f"crm.{SOURCE_SHOWN}"
        attached = replace(examples.DATABASE, alias="crm", address="service=crm")
        assert status_alerts((), {}, Change(put=(attached, STOPPED)))[0].name == one.name
        (home,) = status_alerts((), {2: "crm"}, Change(put=(STOPPED,)))
        assert home.name == SOURCE_SHOWN

    def test_dots_in_names(self) -> None:
        """Two tables that differ only in where the dot belongs are two conditions."""
        one = replace(SUSPENDED, relation="r1", schema="a.b", name="c")
        other = replace(SUSPENDED, relation="r2", schema="a", name="b.c")
        both = status_alerts((), {}, Change(put=(one, other)))
        assert [alert.name for alert in both] == ['"a.b".c', 'a."b.c"']
        held = [Condition("table", "r1", '"a.b".c', "suspended")]
        raised, cleared = status_alerts(held, {}, Change(put=(other,), remove=(one,)))
        assert (raised.name, raised.level) == ('a."b.c"', "critical")
        assert (cleared.name, cleared.level) == ('"a.b".c', "fine")

    def test_others_are_left_alone(self) -> None:
        known = [
            Condition("table", "rother", "public.other", "error"),
            Condition("database", "2", "crm", "ingest-failing"),
        ]
        assert status_alerts(known, {}, Change(put=(ACTIVE, SOURCE, examples.DATABASE))) == ()

    @given(st.lists(st.sampled_from(Status), max_size=30))
    def test_conditions_are_raised_and_cleared_in_turns(self, walk: list[Status]) -> None:
        """Whatever a table goes through, each code is raised, cleared, raised again, …"""
        known: list[Condition] = []
        heard: dict[str, list[str]] = {"suspended": [], "error": []}
        for status in [*walk, Status.ACTIVE]:
            for one in status_alerts(known, {}, Change(put=(replace(ACTIVE, status=status),))):
                heard[one.code].append(one.level)
            stopped = status in (Status.SUSPENDED, Status.ERROR)
            name = SHOWN
            known = [Condition("table", "rtotals", name, status.lower())] if stopped else []
        for levels in heard.values():
            assert levels == ["critical", "fine"] * (len(levels) // 2)
        entered = [s for n, s in enumerate(walk) if n == 0 or walk[n - 1] != s]
        assert heard["suspended"].count("critical") == entered.count(Status.SUSPENDED)
        assert heard["error"].count("critical") == entered.count(Status.ERROR)


@pytest.mark.postgres
class TestPostgres:
    @pytest.fixture
    def listener(self, dsn: str) -> Iterator[psycopg.Connection[Any]]:
        with psycopg.connect(dsn, autocommit=True) as connection:
            listen(connection)
            yield connection

    def test_every_kind_is_raised_and_cleared_once(
        self, postgres: PostgresCatalog, listener: psycopg.Connection[Any]
    ) -> None:
        database = replace(examples.DATABASE, alias="crm", address="service=crm")
        failing = replace(database, failing_since=examples.NOON, failure=WHY)
        source = f"crm.{SOURCE_SHOWN}"

        def commit(*put: DatabaseRecord | Source | StreamTable) -> list[Any]:
            postgres.commit(Change(put=put), fence=lease.fence)
            return crossings_so_far(listener)

        with postgres.lease("test") as lease:
            first = (database, examples.ORDERS, examples.TOTALS, SOURCE, ACTIVE)
            postgres.commit(Change(put=first), fence=lease.fence)
            assert crossings_so_far(listener) == []
            assert commit(STOPPED, SUSPENDED) == [
                ("source", source, "suspended", "critical"),
                ("table", SHOWN, "suspended", "critical"),
            ]
            assert commit(STOPPED, SUSPENDED) == []
            assert commit(failing) == [("database", "crm", "ingest-failing", "critical")]
            assert commit(SOURCE) == [("source", source, "suspended", "fine")]
            assert commit(ERROR) == [
                ("table", SHOWN, "error", "critical"),
                ("table", SHOWN, "suspended", "fine"),
            ]
            assert commit(ACTIVE, database) == [
                ("table", SHOWN, "error", "fine"),
                ("database", "crm", "ingest-failing", "fine"),
            ]

    def test_dots_in_names(
        self, postgres: PostgresCatalog, listener: psycopg.Connection[Any]
    ) -> None:
        """What is raised under a quoted name is cleared under the same one."""
        dotted, plain = replace(SUSPENDED, schema="a.b", name="c"), replace(STOPPED, name="b.c")
        put = (examples.DATABASE, examples.ORDERS, examples.TOTALS, plain, dotted)
        with postgres.lease("test") as lease:
            for _ in range(2):
                postgres.commit(Change(put=put), fence=lease.fence)
            raised = crossings_so_far(listener)
            done = (replace(plain, status=Status.ACTIVE), replace(dotted, status=Status.ACTIVE))
            postgres.commit(Change(put=done), fence=lease.fence)
            cleared = crossings_so_far(listener)
        names = {(one[1], one[2]) for one in raised}
        assert names == {(f'{SOURCE.schema}."b.c"', "suspended"), ('"a.b".c', "suspended")}
        assert [one[1:] for one in cleared if one[3] != "fine"] == []
        assert {(one[1], one[2]) for one in cleared} == names and len(raised) == 2

    def test_what_is_rolled_back_is_neither_sent_nor_logged(
        self,
        postgres: PostgresCatalog,
        listener: psycopg.Connection[Any],
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        def fail(transaction: Transaction) -> None:
            raise KeyError

        put = (examples.DATABASE, examples.ORDERS, examples.TOTALS, SOURCE, SUSPENDED)
        with postgres.lease("test") as lease:
            with pytest.raises(KeyError):
                postgres.commit(Change(put=put), fence=lease.fence, apply=fail)
            assert (heard_so_far(listener), caplog.records) == ([], [])
            postgres.commit(Change(put=put), fence=lease.fence)
        assert len(heard_so_far(listener)) == 1
        (line,) = caplog.records
        assert (line.levelno, line.getMessage()) == (logging.ERROR, f"{SHOWN}: {WHY}")

    def test_it_takes_no_round_trip(
        self, postgres: PostgresCatalog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Statements outside of the pipeline are the transaction's own, and the fence."""
        asked: list[str] = []
        execute = psycopg.Connection.execute

        def counted(self: Any, query: Any, *arguments: Any, **more: Any) -> Any:
            if self.info.pipeline_status == 0:
                asked.append(str(query))
            return execute(self, query, *arguments, **more)

        put = (examples.DATABASE, examples.ORDERS, examples.TOTALS, STOPPED, SUSPENDED)
        with postgres.lease("test") as lease:
            monkeypatch.setattr(psycopg.Connection, "execute", counted)
            postgres.commit(Change(put=put), fence=lease.fence)
            monkeypatch.undo()
        assert len(asked) == 1
