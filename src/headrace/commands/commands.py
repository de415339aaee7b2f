"""Every command that changes something, as data: done here, or left in JSON for a daemon to do.

Errors of a command are those of the functions it stands for. Names of stream tables are qualified;
other names (in queries and scripts) mean the same only under the search path of the client, which
is sent with the command.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from headrace.catalog import records
from headrace.catalog.codec import RECEIPTS, REFRESHES, STREAM_TABLES
from headrace.catalog.records import Receipt, RefreshMode, StreamTable
from headrace.commands.command import Answer, Command
from headrace.commands.database_commands import NOTHING, AlterDatabase, Attach, Detach
from headrace.commands.run import Done, run
from headrace.engine import Engine
from headrace.errors import UserError
from headrace.ingest.adapt import convert_buffers
from headrace.lifecycle.alter import KEEP, Alteration, alter
from headrace.lifecycle.create import create, create_or_replace
from headrace.lifecycle.drop import drop
from headrace.lifecycle.planned_table import TableRequest
from headrace.lifecycle.rebuild import refresh, reinit, resume, resume_mode, suspend
from headrace.lifecycle.repair import Damage, repair
from headrace.project.apply import apply_project
from headrace.project.document import definitions_document, definitions_of, plan_document, plan_of
from headrace.project.plan import ProjectPlan
from headrace.project.read import DefinedTable
from headrace.statements import parse
from headrace.verify.oracle import Oracle, oracle_of
from headrace.verify.sample import SampleRequest
from headrace.verify.verify import verify

TABLE = Answer(STREAM_TABLES.encode, STREAM_TABLES.decode)
TABLES: Answer[tuple[StreamTable, ...]] = Answer(
    lambda tables: [STREAM_TABLES.encode(table) for table in tables],
    lambda value: tuple(STREAM_TABLES.decode(item) for item in value),
)
REFRESH = Answer(REFRESHES.encode, REFRESHES.decode)
RECEIPT = Answer(RECEIPTS.encode, RECEIPTS.decode)
NAMES: Answer[tuple[str, ...]] = Answer(list, tuple)
PLAN = Answer(plan_document, plan_of)
DAMAGES: Answer[tuple[Damage, ...]] = Answer(
    lambda damages: [vars(damage) for damage in damages],
    lambda value: tuple(Damage(**item) for item in value),
)
STATEMENTS: Answer[tuple[Done, ...]] = Answer(
    lambda done: [vars(item) for item in done],
    lambda value: tuple(Done(**{**item, "notices": tuple(item["notices"])}) for item in value),
)


@dataclass(frozen=True)
class Create(Command[tuple[StreamTable, ...]]):
    verb = "create"
    looks_up = True
    requests: tuple[TableRequest, ...]

    @property
    def answer(self) -> Answer[tuple[StreamTable, ...]]:
        return TABLES

    def perform(self, engine: Engine) -> tuple[StreamTable, ...]:
        return create(engine, *self.requests)

    def encode(self) -> dict[str, Any]:
        return {"requests": [vars(request) for request in self.requests]}

    @classmethod
    def decode(cls, value: Mapping[str, Any]) -> Self:
        return cls(tuple(_request(request) for request in value["requests"]))


@dataclass(frozen=True)
class CreateOrReplace(Command[StreamTable]):
    verb = "create or replace"
    looks_up = True
    request: TableRequest

    @property
    def answer(self) -> Answer[StreamTable]:
        return TABLE

    def perform(self, engine: Engine) -> StreamTable:
        return create_or_replace(engine, self.request)

    def encode(self) -> dict[str, Any]:
        return vars(self.request)

    @classmethod
    def decode(cls, value: Mapping[str, Any]) -> Self:
        return cls(_request(value))


@dataclass(frozen=True)
class Alter(Command[StreamTable]):
    """Options that are kept are not in the JSON; null is a value like others."""

    verb = "alter"
    looks_up = True
    schema: str
    name: str
    asked: Alteration

    @property
    def answer(self) -> Answer[StreamTable]:
        return TABLE

    def perform(self, engine: Engine) -> StreamTable:
        return alter(engine, self.schema, self.name, self.asked)

    def encode(self) -> dict[str, Any]:
        values = {option.name: getattr(self.asked, option.name) for option in fields(self.asked)}
        changes = {name: value for name, value in values.items() if value is not KEEP}
        return {"schema": self.schema, "name": self.name, "asked": changes}

    @classmethod
    def decode(cls, value: Mapping[str, Any]) -> Self:
        changes = dict(value["asked"])
        if "refresh_mode" in changes:
            changes["refresh_mode"] = RefreshMode(changes["refresh_mode"])
        return cls(value["schema"], value["name"], Alteration(**changes))


@dataclass(frozen=True)
class Drop(Command[None]):
    verb = "drop"
    schema: str
    name: str
    cascade: bool = False

    @property
    def answer(self) -> Answer[None]:
        return NOTHING

    def perform(self, engine: Engine) -> None:
        drop(engine, self.schema, self.name, cascade=self.cascade)


@dataclass(frozen=True)
class RefreshTable(Command[records.Refresh]):
    verb = "refresh"
    schema: str
    name: str
    mode: RefreshMode | None = None

    @property
    def answer(self) -> Answer[records.Refresh]:
        return REFRESH

    def perform(self, engine: Engine) -> records.Refresh:
        return refresh(engine, self.schema, self.name, self.mode)

    @classmethod
    def decode(cls, value: Mapping[str, Any]) -> Self:
        mode = value["mode"]
        return cls(value["schema"], value["name"], None if mode is None else RefreshMode(mode))


@dataclass(frozen=True)
class Suspend(Command[StreamTable]):
    verb = "suspend"
    schema: str
    name: str

    @property
    def answer(self) -> Answer[StreamTable]:
        return TABLE

    def perform(self, engine: Engine) -> StreamTable:
        return suspend(engine, self.schema, self.name)


@dataclass(frozen=True)
class Resume(Command[StreamTable]):
    verb = "resume"
    schema: str
    name: str
    mode: str | None = None

    @property
    def answer(self) -> Answer[StreamTable]:
        return TABLE

    def perform(self, engine: Engine) -> StreamTable:
        return resume(engine, self.schema, self.name, resume_mode(self.mode))


@dataclass(frozen=True)
class Reinit(Command[records.Refresh]):
    verb = "reinit"
    schema: str
    name: str

    @property
    def answer(self) -> Answer[records.Refresh]:
        return REFRESH

    def perform(self, engine: Engine) -> records.Refresh:
        return reinit(engine, self.schema, self.name)


@dataclass(frozen=True)
class Repair(Command[tuple[Damage, ...]]):
    verb = "repair"

    @property
    def answer(self) -> Answer[tuple[Damage, ...]]:
        return DAMAGES

    def perform(self, engine: Engine) -> tuple[Damage, ...]:
        return repair(engine)


@dataclass(frozen=True)
class ConvertBuffers(Command[tuple[str, ...]]):
    verb = "convert buffers"

    @property
    def answer(self) -> Answer[tuple[str, ...]]:
        return NAMES

    def perform(self, engine: Engine) -> tuple[str, ...]:
        return convert_buffers(engine)


@dataclass(frozen=True)
class Run(Command[tuple[Done, ...]]):
    """A script. It holds the lease from its first statement to its last, without a gap."""

    verb = "run"
    looks_up = True
    text: str

    @property
    def answer(self) -> Answer[tuple[Done, ...]]:
        return STATEMENTS

    def perform(self, engine: Engine) -> tuple[Done, ...]:
        parse(self.text)
        with engine.writing():
            return tuple(run(engine, self.text))


@dataclass(frozen=True)
class Verify(Command[Receipt]):
    verb = "verify"
    schema: str
    name: str
    source: bool = False
    oracle: str = Oracle.SPARK
    sample: str | None = None

    @property
    def answer(self) -> Answer[Receipt]:
        return RECEIPT

    def perform(self, engine: Engine) -> Receipt:
        oracle = oracle_of(self.oracle)
        sample = None if self.sample is None else SampleRequest.of(self.sample)
        return verify(
            engine, self.schema, self.name, source=self.source, oracle=oracle, sample=sample
        )


@dataclass(frozen=True)
class Apply(Command[ProjectPlan]):
    """The stream tables become those of a folder, which the client has read."""

    verb = "apply"
    looks_up = True
    folder: str
    wanted: tuple[DefinedTable, ...]
    prune: bool = False
    expected: ProjectPlan | None = None

    @property
    def answer(self) -> Answer[ProjectPlan]:
        return PLAN

    def perform(self, engine: Engine) -> ProjectPlan:
        return apply_project(
            engine, self.folder, self.wanted, prune=self.prune, expected=self.expected
        )

    def encode(self) -> dict[str, Any]:
        expected = None if self.expected is None else plan_document(self.expected)
        definitions = definitions_document(self.wanted)
        return {**vars(self), "wanted": definitions, "expected": expected}

    @classmethod
    def decode(cls, value: Mapping[str, Any]) -> Self:
        expected = None if value["expected"] is None else plan_of(value["expected"])
        return cls(value["folder"], definitions_of(value["wanted"]), value["prune"], expected)


COMMANDS: tuple[type[Command[Any]], ...] = (
    Create,
    CreateOrReplace,
    Alter,
    Drop,
    RefreshTable,
    Suspend,
    Resume,
    Reinit,
    Repair,
    ConvertBuffers,
    Run,
    Verify,
    Apply,
    Attach,
    AlterDatabase,
    Detach,
)
_BY_VERB = {command.verb: command for command in COMMANDS}


def encode_command(command: Command[Any], search_path: tuple[str, ...]) -> dict[str, Any]:
    """Return the command in JSON, as a client with this search path means it."""
    return {"verb": command.verb, "search_path": list(search_path), "fields": command.encode()}


def decode_command(value: Mapping[str, Any], search_path: tuple[str, ...]) -> Command[Any]:
    """Return the command; raise `invalid-option` if its names mean others in this search path."""
    try:
        kind = _BY_VERB[value["verb"]]
        command, sent_path = kind.decode(value["fields"]), tuple(value["search_path"])
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(
            "invalid-option",
            "the daemon does not understand the command",
            detail=f"{type(error).__name__}: {error}",
            hint="It is of another version of Headrace: restart it.",
        ) from error
    if command.looks_up and sent_path != search_path:
        raise UserError(
            "invalid-option",
            "names mean something else to the daemon",
            detail=f"It looks them up in {', '.join(search_path)}, not in {', '.join(sent_path)}.",
            hint="Connect with the search path of the daemon, or stop it first.",
        )
    return command


def _request(value: Mapping[str, Any]) -> TableRequest:
    return TableRequest(**{**value, "refresh_mode": RefreshMode(value["refresh_mode"])})
