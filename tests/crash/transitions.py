"""Ways from triggers to the log of the server and back, as actions that may be cut short.

They take cuts only, so that none of them needs Spark. Each begins in one of `STARTS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import headrace
from headrace.catalog.records import CaptureMode
from headrace.ingest.ingest import ingest

TABLES = """
CREATE TABLE entries (account integer, amount integer);
ALTER TABLE entries REPLICA IDENTITY FULL;
CREATE TABLE accounts (id integer PRIMARY KEY, owner text);
INSERT INTO entries SELECT i % 5, i FROM generate_series(1, 20) i;
INSERT INTO accounts SELECT i, 'o' || i FROM generate_series(1, 5) i;
"""
QUERY = "SELECT a.owner, e.amount FROM entries e JOIN accounts a ON a.id = e.account"
CHANGE = """
UPDATE entries SET amount = amount + 1 WHERE account = 1;
INSERT INTO entries SELECT 1, max(amount) FROM entries;
DELETE FROM entries WHERE amount = (SELECT min(amount) FROM entries);
UPDATE accounts SET owner = owner || '+' WHERE id = 2;
INSERT INTO accounts SELECT max(id) + 1, 'new' FROM accounts;
UPDATE accounts SET id = id + 1000 WHERE id = 3
"""
# More than a slot holds back without need.
NOISE = "SELECT pg_logical_emit_message(false, 'noise', repeat('n', 1 << 20))"
LOSE_SLOT = (
    "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
    " WHERE database = current_database()"
)


def modes(hr: headrace.Headrace) -> set[CaptureMode]:
    return {source.mode for source in hr._engine.catalog.state().sources}


def take_cut(hr: headrace.Headrace) -> None:
    engine = hr._engine
    with engine.writing() as lease:
        ingest(engine, engine.catalog.state(), lease.fence)


def go_to_log(hr: headrace.Headrace) -> None:
    hr.set("cdc_mode", "auto")
    take_cut(hr)
    assert modes(hr) == {CaptureMode.WAL}


def go_to_triggers(hr: headrace.Headrace) -> None:
    hr.set("cdc_mode", "trigger")
    take_cut(hr)
    assert modes(hr) == {CaptureMode.TRIGGER}


def fall_back(hr: headrace.Headrace) -> None:
    take_cut(hr)
    assert modes(hr) == {CaptureMode.TRIGGER}


def drop(hr: headrace.Headrace) -> None:
    if hr.status():
        hr.drop_stream_table("owned")
    # A drop that died after its commit is finished by whoever writes next.
    with hr._engine.writing():
        pass


def uninstall(hr: headrace.Headrace) -> None:
    hr.uninstall()


@dataclass(frozen=True)
class Transition:
    """Something that is done from a start on; `ends` is what all sources are captured by then."""

    name: str
    perform: Callable[[headrace.Headrace], object]
    start: str = "log"
    before: str = CHANGE
    ends: CaptureMode | None = CaptureMode.TRIGGER


# From triggers: to the log, or killed on the way there.
STARTS = {"triggers": None, "log": [], "transitioning": ["after", "RecordModes", 1]}

GO = Transition("go to the log", go_to_log, "triggers", ends=CaptureMode.WAL)
TRANSITIONS = (
    GO,
    Transition("follow the log", take_cut, ends=CaptureMode.WAL),
    Transition("move an idle slot", take_cut, before=";".join([NOISE] * 20), ends=CaptureMode.WAL),
    Transition("go back to triggers", go_to_triggers),
    Transition("lose the slot", fall_back, before=f"{CHANGE};{LOSE_SLOT}"),
    Transition("give up on the way", go_to_triggers, "transitioning"),
    Transition("drop what is followed", drop, ends=None),
    Transition("uninstall what is followed", uninstall, ends=None),
)
