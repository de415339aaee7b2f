"""The alerts of a commit: the conditions that it raises and clears. Pure.

Every path that suspends a stream table or a source, or that records a failure, ends in a commit of
the catalog, so none of them can forget to send an alert. No trigger sends alerts: schema `headrace`
has no triggers, so that a trigger in it is always somebody else's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from headrace.capture.wal.slot_probe import Level
from headrace.catalog.alert import About, Alert, qualified
from headrace.catalog.catalog import Change, Record
from headrace.catalog.records import DatabaseRecord, Relation, Source, Status, StreamTable

STOPPED = {Status.SUSPENDED: "suspended", Status.ERROR: "error"}

# The messages when a condition begins, and when it has ended.
MESSAGES: Mapping[tuple[About, str], tuple[str, str]] = {
    ("table", "suspended"): (
        "the stream table is suspended: see headrace.status",
        "the stream table is not suspended any more",
    ),
    ("table", "error"): (
        "refreshes of the stream table fail: see headrace.status",
        "the stream table is not in status ERROR any more",
    ),
    ("source", "suspended"): (
        "the source is suspended: see headrace cdc",
        "the source is not suspended any more",
    ),
    ("source", "error"): (
        "the source cannot be captured: see headrace cdc",
        "the source can be captured again",
    ),
    ("database", "ingest-failing"): (
        "changes are not taken in: see headrace databases",
        "changes are taken in again",
    ),
}


class Condition(NamedTuple):
    """A condition of a table, source or database. `key` is a relation id, or a database's number.

    A table that is rebuilt gets another relation, and is identified by its name.
    """

    about: About
    key: str
    name: str
    code: str

    @classmethod
    def of(cls, about: About, key: str, parts: Iterable[str], code: str) -> Condition:
        """Return a condition of the thing whose name has these parts."""
        return cls(about, key, qualified(*parts), code)

    @property
    def identity(self) -> tuple[About, str, str]:
        return self.about, self.name, self.code


def status_alerts(
    before: Iterable[Condition], attached: Mapping[int, str], change: Change
) -> tuple[Alert, ...]:
    """Return the alerts that a change raises and clears, the raised ones first.

    So a table whose refreshes failed and that is suspended now is fine at no time between them.
    `before` are the conditions that held until now, `attached` the aliases of attached databases by
    their numbers.
    """
    earlier_conditions = {condition.identity: condition for condition in before}
    new = {
        record.id: record.alias
        for record in change.put
        if isinstance(record, DatabaseRecord) and record.address is not None
    }
    put = {_key(record): record for record in change.put}
    gone = put.keys() | {_key(record) for record in change.remove}
    holds = {
        condition.identity
        for condition in earlier_conditions.values()
        if (condition.about, condition.key) not in gone
    }
    raised = []
    for record in put.values():
        condition = _condition(record, {**attached, **new})
        if condition is not None:
            holds.add(condition.identity)
            if condition.identity not in earlier_conditions:
                raised.append((condition, _reason(record)))
    return (
        *(_alert(condition, "critical", reason) for condition, reason in raised),
        *(
            _alert(condition, "fine")
            for condition in earlier_conditions.values()
            if condition.identity not in holds
        ),
    )


def _alert(condition: Condition, level: Level, reason: str | None = None) -> Alert:
    about, _, name, code = condition
    begins, ends = MESSAGES[about, code]
    return Alert(about, name, level, code, ends if level == "fine" else begins, reason)


def _key(record: Record) -> tuple[str, str]:
    match record:
        case StreamTable():
            return "table", record.relation
        case Source():
            return "source", record.relation
        case DatabaseRecord():
            return "database", str(record.id)
        case Relation():
            return "relation", record.id


def _condition(record: Record, attached: Mapping[int, str]) -> Condition | None:
    match record:
        case StreamTable() if record.status in STOPPED:
            parts = (record.schema, record.name)
            return Condition.of("table", record.relation, parts, STOPPED[record.status])
        case Source() if record.status in STOPPED:
            alias = attached.get(record.database)
            database = () if alias is None else (alias,)
            parts = (*database, record.schema, record.name)
            return Condition.of("source", record.relation, parts, STOPPED[record.status])
        case DatabaseRecord() if record.failing_since is not None:
            return Condition.of("database", str(record.id), (record.alias,), "ingest-failing")
        case _:
            return None


def _reason(record: Record) -> str | None:
    match record:
        case StreamTable() | Source():
            return record.reason
        case DatabaseRecord():
            return record.failure
        case Relation():
            return None
