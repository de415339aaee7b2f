"""Ways from triggers to the log of the server and back, as actions that may be cut short.

They take cuts only, so that none of them needs Spark. Each begins in one of `STARTS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import psycopg

import headrace
from headrace.catalog.records import CaptureMode
from headrace.ingest.ingest import ingest
from tests.ingest.world import begin_stream

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
MEGABYTES = 20
NOISE = "SELECT pg_logical_emit_message(false, 'noise', repeat('n', 1 << 20))"
CUTS = 50
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
    for _ in range(CUTS):
        take_cut(hr)
        # Transactions of the server's own, in whatever database, may be open for a moment.
        if CaptureMode.TRANSITIONING not in modes(hr):
            break
    assert CaptureMode.WAL in modes(hr)
    assert CaptureMode.TRANSITIONING not in modes(hr)


def go_to_triggers(hr: headrace.Headrace) -> None:
    hr.set("cdc_mode", "trigger")
    take_cut(hr)
    assert modes(hr) == {CaptureMode.TRIGGER}


def take_streamed_cut(hr: headrace.Headrace) -> None:
    """As a daemon does it: the log is streamed before."""
    engine = hr._engine
    with engine.writing() as lease:
        state = engine.catalog.state()
        begin_stream(engine, state)
        ingest(engine, state, lease.fence)


def leave_the_stream(hr: headrace.Headrace) -> None:
    with hr._engine.writing():
        begin_stream(hr._engine, hr._engine.catalog.state())
    go_to_triggers(hr)


def there_and_back(hr: headrace.Headrace) -> None:
    """To the log, where the slot moves on although nothing was changed, and back."""
    go_to_log(hr)
    with psycopg.connect(hr._engine.database.conninfo, autocommit=True) as application:
        for _ in range(MEGABYTES):
            application.execute(NOISE)
    take_cut(hr)
    go_to_triggers(hr)


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
    """Something that is done from a start on, and some of the steps that it takes.

    `ends` is how all sources are captured once another process has taken a cut after it.
    """

    name: str
    perform: Callable[[headrace.Headrace], object]
    ends: CaptureMode | None
    steps: tuple[str, ...]
    start: str = "log"
    before: str = CHANGE


# From triggers: to the log, or killed on the way there.
STARTS = {"triggers": None, "log": [], "transitioning": ["after", "RecordModes", 1]}

GO = Transition(
    "go to the log",
    go_to_log,
    CaptureMode.WAL,
    ("NameSlot", "PublishSource", "MakeSlot", "RecordModes", "PinCut", "TearDownCapture"),
    start="triggers",
)
BACK = ("SetUpCapture", "CopySource", "PinCut", "Acknowledge", "StopFollowing")
TRANSITIONS = (
    GO,
    Transition(
        "follow the log",
        take_cut,
        CaptureMode.WAL,
        ("AppendChange", "Announce", "PinCut", "Acknowledge"),
    ),
    Transition(
        "move an idle slot",
        take_cut,
        CaptureMode.WAL,
        ("MoveSlot",),
        before=";".join([NOISE] * MEGABYTES),
    ),
    Transition("go back to triggers", go_to_triggers, CaptureMode.TRIGGER, BACK),
    Transition(
        "follow a stream",
        take_streamed_cut,
        CaptureMode.WAL,
        ("AppendChange", "PinCut", "Acknowledge"),
    ),
    Transition("leave a stream", leave_the_stream, CaptureMode.TRIGGER, BACK),
    # Triggers take over; the next process is free to try again.
    Transition("lose the slot", take_cut, CaptureMode.WAL, BACK, before=f"{CHANGE};{LOSE_SLOT}"),
    Transition(
        "give up on the way",
        go_to_triggers,
        CaptureMode.TRIGGER,
        ("RecordModes", "StopFollowing"),
        start="transitioning",
    ),
    Transition("drop what is followed", drop, None, ("StopFollowing", "TearDownCapture")),
    Transition("uninstall what is followed", uninstall, None, ("RemoveCapture",)),
)
