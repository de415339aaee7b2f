"""Tables for people, at 80 columns and with names that are hard to show."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import RenderableType

from headrace.cli.screen import console
from headrace.cli.tables import (
    differences,
    listed,
    refreshed,
    remembered,
    set_values,
    standing,
    table_of,
    verified,
)
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
    "standing": standing([table(LONG)], {LONG: refresh(rows_inserted=1_234_567)}),
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
    text = shown(standing([table(), table("public.new", lag=None)], {"public.totals": refresh()}))
    assert re.search(r"public.totals +ACTIVE +7 +1 min 30 s +differential +\+12 −3 +187 ms", text)
    assert re.search(r"public.new +ACTIVE +7 +- +- +- +-", text)
    assert "failed" in shown(remembered([("a.b", refresh(error="spark-failed: no"))]))
    assert "recomputed, served" in shown(verified([("a.b", receipt())]))
    assert "NOT EQUAL" in shown(verified([("a.b", receipt(equal=False))]))


def test_differences_are_told_by_row() -> None:
    assert differences("a.b", receipt()) == []
    assert differences("a.b", receipt(equal=False)) == [
        "recomputed a.b: 1 surplus: customer ada, n 3"
    ]
