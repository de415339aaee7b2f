"""How sources shall be captured: what their readers ask for, and what the setting says (pure)."""

from __future__ import annotations

import pytest

from headrace.catalog import State
from headrace.errors import UserError
from headrace.ingest.append_only import growing
from headrace.ingest.requested_modes import requested_mode_of, require_agreement
from headrace.settings import Settings
from tests.observe.states import state_of, table


def state_with(**asked: str | None) -> State:
    """A source `s` that stream tables of these names read, each with its request."""
    tables = [
        table(name, {"s": 1}, 1, options={} if mode is None else {"cdc_mode": mode})
        for name, mode in asked.items()
    ]
    return state_of({"s": 1, **dict.fromkeys(asked, 1)}, *tables)


def requested_mode(state: State, setting: str = "trigger") -> str:
    (source,) = state.sources
    return requested_mode_of(state, Settings.of({"cdc_mode": setting}), source)


@pytest.mark.parametrize("setting", ["trigger", "auto", "wal"])
def test_the_setting_counts_where_nobody_asks(setting: str) -> None:
    assert requested_mode(state_with(), setting) == setting
    assert requested_mode(state_with(a=None, b=None), setting) == setting


@pytest.mark.parametrize("asked", ["trigger", "auto", "wal"])
def test_a_request_counts_more_than_the_setting(asked: str) -> None:
    for setting in ("trigger", "auto", "wal"):
        assert requested_mode(state_with(a=None, b=asked), setting) == asked
        assert requested_mode(state_with(a=asked, b=asked), setting) == asked


def test_a_stream_table_asks_for_what_it_reads_itself() -> None:
    below = table("a", {"s": 1}, 1)
    above = table("b", {"a": 1}, 1, options={"cdc_mode": "wal"})
    assert requested_mode(state_of({"s": 1, "a": 1, "b": 1}, below, above)) == "trigger"


def test_requests_have_to_agree() -> None:
    for agreed in (
        state_with(),
        state_with(a="wal", b=None, c="wal"),
        state_with(a=None, b="auto"),
    ):
        require_agreement(agreed)
    apart = state_with(a="wal", b=None, c="auto")
    with pytest.raises(UserError, match=r"public\.a and public\.c ask") as caught:
        require_agreement(apart)
    assert caught.value.code == "invalid-option"
    assert "public.s: wal and auto" in caught.value.message


def test_append_only_has_to_be_agreed_on_as_well() -> None:
    def said(**asked: bool | None) -> State:
        options = {name: {} if one is None else {"append_only": one} for name, one in asked.items()}
        tables = [table(name, {"s": 1}, 1, options=one) for name, one in options.items()]
        return state_of({"s": 1, **dict.fromkeys(asked, 1)}, *tables)

    for agreed, declared in (
        (said(), False),
        (said(a=None, b=None), False),
        (said(a=True, b=None, c=True), True),
        (said(a=None, b=False), False),
    ):
        require_agreement(agreed)
        assert growing(agreed) == (frozenset({"s"}) if declared else frozenset())
    apart = said(a=True, b=None, c=False)
    with pytest.raises(UserError, match=r"public\.a and public\.c differ in append_only") as caught:
        require_agreement(apart)
    assert caught.value.code == "invalid-option"
    assert "public.s: true and false" in caught.value.message
    assert growing(apart) == frozenset()


def test_where_they_do_not_the_most_careful_counts() -> None:
    assert requested_mode(state_with(a="wal", b="auto")) == "auto"
    assert requested_mode(state_with(a="wal", b="trigger", c="auto"), "wal") == "trigger"
