"""Tables for people, at 80 columns and with names that are hard to show."""

from __future__ import annotations

import io
import re
from datetime import timedelta

import pytest
from rich.console import RenderableType

from headrace.cli.screen import console
from headrace.cli.tables import (
    behind,
    differences,
    listed,
    refreshed,
    remembered,
    set_values,
    standing,
    table_of,
    troubles,
    verified,
)
from headrace.observe.blockers import Blocker
from tests.cli.examples import LONG, receipt, refresh, table


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(what: RenderableType, stream: io.StringIO | None = None) -> str:
    stream = stream or io.StringIO()
    console(stream).print(what)
    return stream.getvalue()


EVERY = {
    "listed": listed([table(LONG)]),
    "standing": standing([table(LONG)], {LONG: refresh(rows_inserted=1_234_567)}, 80),
    "refreshed": refreshed([(LONG, refresh(rows_inserted=1_234_567))]),
    "remembered": remembered([(LONG, refresh(rows_inserted=1_234_567))]),
    "verified": verified([(LONG, receipt())]),
    "set_values": set_values(
        [{"name": "n", "value": True, "default": False, "description": "very long " * 20}]
    ),
}


@pytest.mark.parametrize("name", EVERY)
def test_nothing_is_lost_at_80_columns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = shown(EVERY[name])
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    joined = "".join(line[:20].strip() for line in text.splitlines())
    if name != "set_values":
        first_column = re.sub(r"\W", "", joined)
        assert LONG.replace(".", "")[-8:] in first_column + "".join(text.split())


@pytest.mark.parametrize("name", EVERY)
def test_a_row_is_a_line_in_a_pipe(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert len(shown(EVERY[name]).splitlines()) == 3


def test_text_from_the_database_is_shown_as_it_is() -> None:
    text = shown(table_of(("name", "value"), [("[red]x[/red]", ":smile: \x1b[31m 東京")]))
    assert "[red]x[/red]" in text
    assert ":smile: \\x1b[31m 東京" in text


def test_colours_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "\x1b" not in shown(listed([table()]))
    assert "\x1b[32m" in shown(listed([table()]), Terminal())
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[32m" not in shown(listed([table()]), Terminal())


def test_what_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    late = table(lag_own=timedelta(seconds=3), lag_inherited=timedelta(minutes=2))
    text = shown(standing([late, table("public.new", lag=None)], {"public.totals": refresh()}))
    done = r"differential +\+12 −3 +187 ms"
    assert re.search(rf"public.totals +ACTIVE +7 +1 min 30 s +3 s\+2 min +{done}", text)
    assert re.search(r"public.new +ACTIVE +7 +- +- +- +- +-", text)
    assert "failed" in shown(remembered([("a.b", refresh(error="spark-failed: no"))]))
    assert "recomputed, served" in shown(verified([("a.b", receipt())]))
    assert "NOT EQUAL" in shown(verified([("a.b", receipt(equal=False))]))


def test_the_status_is_readable_at_100_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    long = timedelta(hours=23, minutes=59)
    one = table(status="SUSPENDED", epoch=1234, lag=long, lag_own=long, lag_inherited=long)
    last = {one.name: refresh(rows_inserted=12_345, rows_deleted=123)}
    text = shown(standing([one], last))
    (line,) = (line for line in text.splitlines() if "SUSPENDED" in line)
    for part in ("public.totals", "1234", "23 h 59 min", "23 h+23 h", "+12,345 −123", "187 ms"):
        assert part in line


def test_how_far_behind() -> None:
    zero = timedelta(0)
    assert behind(table(lag_own=None, lag_inherited=zero)) == "-"
    assert behind(table(lag_own=zero, lag_inherited=zero)) == "0 s"
    assert behind(table(lag_own=zero, lag_inherited=timedelta(days=2))) == "0 s+2 d"
    assert behind(table(lag_own=timedelta(minutes=59, seconds=59), lag_inherited=None)) == "59 min"


def test_troubles_name_the_root() -> None:
    assert troubles(table()) == []
    stuck = table(reason="no", blocked_by=Blocker("public.c", "zero"), failures=2)
    assert troubles(stuck) == [
        "public.totals: no",
        "public.totals: waits for public.c (zero)",
        "public.totals: failed 2 times in a row",
    ]


def test_differences_are_reported_by_row() -> None:
    assert differences("a.b", receipt()) == []
    assert differences("a.b", receipt(equal=False)) == [
        "recomputed a.b: 1 surplus: customer ada, n 3"
    ]
