"""Codecs between records and rows: one table of fields for each kind of record.

A row is a JSON object with the column names of its table as keys. Both directions are explicit, and
values that JSON cannot carry exactly (a time without zone, a NaN) are refused when written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from headrace.capture.wal.following import Followed, Following
from headrace.catalog.records import (
    Access,
    CaptureMode,
    CutRecord,
    DatabaseRecord,
    Effort,
    InputNames,
    OutputColumn,
    Receipt,
    Refresh,
    RefreshMode,
    Relation,
    Request,
    RequestState,
    Source,
    StageRun,
    Status,
    StratumTicks,
    StreamTable,
    TierInForce,
    ViewRecord,
)
from headrace.source.table import SourceColumn
from headrace.store.log import Pin
from headrace.types import Collation, Type

R = TypeVar("R")
Row = dict[str, Any]


def to_json(value: Any) -> str:
    """Return a value as JSON text; raise ValueError for NaN and infinities, which JSON lacks."""
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


@dataclass(frozen=True)
class Field:
    """An attribute, the column of the same name, and the conversions between them."""

    name: str
    encode: Callable[[Any], Any] | None = None
    decode: Callable[[Any], Any] | None = None


@dataclass(frozen=True)
class Codec(Generic[R]):
    """The rows of one table. A record replaces the one with its `key`; None: rows are added."""

    record: type[R]
    table: str
    key: str | None
    fields: tuple[Field, ...]

    def encode(self, record: R) -> Row:
        return {
            field.name: getattr(record, field.name)
            if field.encode is None
            else field.encode(getattr(record, field.name))
            for field in self.fields
        }

    def decode(self, row: Mapping[str, Any]) -> R:
        return self.record(
            **{
                field.name: row[field.name]
                if field.decode is None
                else field.decode(row[field.name])
                for field in self.fields
            }
        )


def _plain(*names: str) -> tuple[Field, ...]:
    return tuple(Field(name) for name in names)


def _encode_time(value: datetime | None) -> str | None:
    if value is None:
        return None
    if value.tzinfo is None:
        raise ValueError(f"a time without zone: {value!r}")
    return value.isoformat()


def _decode_time(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value).astimezone(UTC)


def _times(*names: str) -> tuple[Field, ...]:
    return tuple(Field(name, _encode_time, _decode_time) for name in names)


def _mappings(*names: str) -> tuple[Field, ...]:
    return tuple(Field(name, dict) for name in names)


def _tuples(*names: str) -> tuple[Field, ...]:
    return tuple(Field(name, list, tuple) for name in names)


def _decode_stage(row: Row) -> StageRun:
    accesses = tuple(Access(**access) for access in row.get("accesses", ()))
    return StageRun(**{**row, "accesses": accesses})


def decode_effort(row: Row) -> Effort:
    """Return the effort of a refresh from the JSON in a line of the history."""
    return Effort(**row)


def _encode_type(value: Type | None) -> Row | None:
    return None if value is None else value.to_json()


def _decode_type(value: Row | None) -> Type | None:
    return None if value is None else Type.from_json(value)


def _encode_followed(followed: Followed | None) -> Row | None:
    return None if followed is None else {**vars(followed), "since": _encode_time(followed.since)}


def _decode_followed(value: Row | None) -> Followed | None:
    if value is None:
        return None
    since = datetime.fromisoformat(value["since"]).astimezone(UTC)
    tuples = {"entry": tuple(value["entry"]), "key": tuple(value["key"])}
    return Followed(**{**value, **tuples, "since": since})


_STATUS = Field("status", str, Status)
_PIN = Field(
    "pin",
    lambda pin: {"version": pin.version, "epoch": pin.epoch},
    lambda value: Pin(version=value["version"], epoch=value["epoch"]),
)
_RELATION_COLUMNS = Field(
    "columns",
    lambda columns: [{"name": name, "type": of.to_json()} for name, of in columns],
    lambda value: tuple((column["name"], Type.from_json(column["type"])) for column in value),
)
_SOURCE_COLUMNS = Field(
    "columns",
    lambda columns: [{**vars(column), "type": _encode_type(column.type)} for column in columns],
    lambda value: tuple(
        SourceColumn(**{**column, "type": _decode_type(column["type"])}) for column in value
    ),
)
_OUTPUT_COLUMNS = Field(
    "columns",
    lambda columns: [{**vars(column), "type": column.type.to_json()} for column in columns],
    lambda value: tuple(
        OutputColumn(**{**column, "type": Type.from_json(column["type"])}) for column in value
    ),
)
_VIEWS = Field(
    "views",
    lambda views: [vars(view) for view in views],
    lambda value: tuple(ViewRecord(**{**row, "columns": tuple(row["columns"])}) for row in value),
)
_NAMES = Field(
    "names",
    lambda names: {relation: vars(named) for relation, named in names.items()},
    lambda value: {
        relation: InputNames(**{**row, "columns": tuple(row["columns"])})
        for relation, row in value.items()
    },
)
_EDGES = Field(
    "edges",
    lambda edges: {relation: list(operators) for relation, operators in edges.items()},
    lambda value: {relation: tuple(operators) for relation, operators in value.items()},
)
_FOLLOWING = Field(
    "following",
    lambda following: None if following is None else vars(following),
    lambda value: None if value is None else Following(**value),
)
_FOLLOWED = Field("followed", _encode_followed, _decode_followed)
_KEYS = Field("keys", None, lambda value: tuple(tuple(key) for key in value))

DATABASES = Codec(
    DatabaseRecord,
    "databases",
    "id",
    (
        *_plain("id", "alias", "system_identifier", "timeline", "epoch", "snapshot"),
        *_plain("address", "setup_address", "oid", "share", "failure"),
        *_plain("quota", "priority"),
        *_times("cut_at", "failing_since"),
        _FOLLOWING,
    ),
)
RELATIONS = Codec(
    Relation,
    "relations",
    "id",
    (*_plain("id", "condition", "shown_epoch"), *_tuples("visible"), _RELATION_COLUMNS, _PIN),
)
SOURCES = Codec(
    Source,
    "sources",
    "relation",
    (
        *_plain("relation", "database", "oid", "schema", "name", "storage", "row_triggers"),
        *_plain("reason", "mode_reason", "shrunk_at"),
        Field("mode", str, CaptureMode),
        *(_SOURCE_COLUMNS, _KEYS, _STATUS, _FOLLOWED),
    ),
)
STREAM_TABLES = Codec(
    StreamTable,
    "stream_tables",
    "relation",
    (
        *_plain("relation", "schema", "name", "query", "schedule", "reason", "epoch"),
        *_plain("held", "failures", "own_scans", "awaits_rebuild", "creator"),
        *_mappings("options", "frontier"),
        *_tuples("inputs", "key", "search_path"),
        *_times("as_of", "created_at", "published_at"),
        Field("refresh_mode", str, RefreshMode),
        Field("default_collation", str, Collation),
        *(_OUTPUT_COLUMNS, _STATUS, _NAMES, _VIEWS, _EDGES),
    ),
)
EPOCHS = Codec(
    CutRecord, "epochs", None, _plain("epoch", "database", "snapshot") + _times("cut_at")
)
REFRESHES = Codec(
    Refresh,
    "refreshes",
    None,
    (
        *_plain("id", "table", "epoch", "mode", "reason", "rows_inserted", "rows_deleted"),
        *_plain("spark_jobs", "error", "iterations", "strata_skipped"),
        *_mappings("phases", "versions"),
        *_tuples("group"),
        *_times("started_at", "finished_at"),
        Field(
            "stages",
            lambda stages: [asdict(stage) for stage in stages],
            lambda stages: tuple(map(_decode_stage, stages)),
        ),
        Field(
            "effort",
            lambda effort: None if effort is None else vars(effort),
            lambda row: None if row is None else decode_effort(row),
        ),
    ),
)
RECEIPTS = Codec(
    Receipt,
    "receipts",
    None,
    (
        *_plain("id", "table", "epoch", "equal", "rows", "missing", "surplus", "tolerance"),
        *_plain("oracle", "covered", "definition"),
        *_mappings("detail"),
        *_times("verified_at"),
    ),
)
REQUESTS = Codec(
    Request,
    "requests",
    None,
    (
        *_plain("id", "command", "requested_by", "progress", "cancel", "fence"),
        *_plain("result", "error"),
        *_times("requested_at", "started_at", "finished_at"),
        Field("state", str, RequestState),
    ),
)
TICKS = Codec(
    StratumTicks,
    "strata",
    "stratum",
    _plain("stratum", "refreshed", "skipped", "skipped_last") + _times("last_tick_at"),
)
TIERS = Codec(
    TierInForce,
    "tiers",
    "relation",
    _plain("relation", "tier", "reads_per_minute", "next_tier") + _times("next_at"),
)

# The records of `State`, in the order in which rows refer to each other.
STATE: tuple[Codec[Any], ...] = (DATABASES, RELATIONS, SOURCES, STREAM_TABLES)
STATE_BY_TABLE = {codec.table: codec for codec in STATE}
CODECS: tuple[Codec[Any], ...] = (*STATE, EPOCHS, REFRESHES, RECEIPTS, REQUESTS, TICKS, TIERS)
