"""The commands about attached databases, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headrace.commands.command import Answer, Command
from headrace.engine import Engine
from headrace.lifecycle.databases import alter_database, attach, detach

NOTHING: Answer[None] = Answer(lambda nothing: None, lambda value: None)


@dataclass(frozen=True)
class Attach(Command[None]):
    """References in the addresses are resolved by the process that performs the command."""

    verb = "attach"
    alias: str
    dsn: str
    setup_dsn: str | None = None
    share: int = 1
    quota: int | None = None
    priority: int = 0

    @property
    def answer(self) -> Answer[None]:
        return NOTHING

    def perform(self, engine: Engine) -> None:
        attach(engine, self.alias, self.dsn, self.setup_dsn, self.share, self.quota, self.priority)


@dataclass(frozen=True)
class AlterDatabase(Command[None]):
    """Options that are kept are not among the changes; a quota of None means no quota."""

    verb = "alter database"
    alias: str
    changes: Mapping[str, Any]

    @property
    def answer(self) -> Answer[None]:
        return NOTHING

    def perform(self, engine: Engine) -> None:
        alter_database(engine, self.alias, self.changes)


@dataclass(frozen=True)
class Detach(Command[None]):
    verb = "detach"
    alias: str

    @property
    def answer(self) -> Answer[None]:
        return NOTHING

    def perform(self, engine: Engine) -> None:
        detach(engine, self.alias)
