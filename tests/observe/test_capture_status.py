"""How the sources below a stream table are captured, as its status says."""

from __future__ import annotations

from dataclasses import replace

from headrace.capture.wal.following import Following
from headrace.catalog import State
from headrace.catalog.records import CaptureMode, Source, Status, StreamTable
from headrace.observe.capture_status import SourceCapture, captures, is_decoded
from tests.catalog import examples

LOG = Following("headrace_1", "1", 7, 1, "1", "7", 1)
HOME = replace(examples.DATABASE, following=LOG)
AWAY = replace(examples.DATABASE, id=2, alias="crm", address="host=x", following=LOG)


def source(name: str, database: int = 1, **given: object) -> Source:
    values = {"relation": name, "name": name, "database": database, "status": Status.ACTIVE}
    return replace(examples.SOURCE, **{**values, **given})  # type: ignore[arg-type]


def table(name: str, *inputs: str) -> StreamTable:
    return replace(examples.TABLE, relation=name, name=name, inputs=inputs)


TABLES = (table("a", "s", "b"), table("b", "t", "a"), table("c", "b"), table("d"))
SOURCES = (
    source("s"),
    source("t", mode=CaptureMode.WAL),
    source("unread", 2, mode=CaptureMode.TRANSITIONING),
)
STATE = State(databases=(HOME, AWAY), sources=SOURCES, stream_tables=TABLES)


def test_sources_below_a_table_directly_or_through_others() -> None:
    found = captures(STATE, TABLES, serving=True)
    below = (
        SourceCapture("shop.s", "TRIGGER"),
        SourceCapture("shop.t", "WAL", "headrace_1", "active"),
    )
    assert found == {"a": below, "b": below, "c": below, "d": ()}


def test_a_decoder_needs_a_daemon_and_a_source_that_goes_on() -> None:
    def decoder(state: State, *, serving: bool) -> list[str | None]:
        (found,) = captures(state, [table("r", "t")], serving=serving).values()
        return [one.decoder for one in found]

    assert decoder(STATE, serving=False) == ["stopped"]
    failing = replace(HOME, failing_since=examples.NOON)
    assert decoder(replace(STATE, databases=(failing, AWAY)), serving=True) == ["error"]
    stopped = source("t", mode=CaptureMode.WAL, status=Status.SUSPENDED)
    assert decoder(replace(STATE, sources=(stopped,)), serving=True) == ["error"]


def test_a_source_of_an_attached_database_has_its_alias() -> None:
    (found,) = captures(STATE, [table("r", "unread")], serving=True).values()
    assert found == (SourceCapture("crm.shop.unread", "TRANSITIONING", "headrace_1", "active"),)


def test_where_there_are_triggers_alone_nobody_asks_for_a_daemon() -> None:
    assert is_decoded(STATE)
    assert not is_decoded(replace(STATE, sources=(source("s"),)))
