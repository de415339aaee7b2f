"""The commands about attached databases, as data."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.engine import Engine
from headrace.lifecycle.attach import attach, detach
from headrace.schedule.command import Answer, Command

NOTHING: Answer[None] = Answer(lambda nothing: None, lambda value: None)


@dataclass(frozen=True)
class Attach(Command[None]):
    """References in the addresses are looked up by whoever performs it."""

    verb = "attach"
    alias: str
    dsn: str
    setup_dsn: str | None = None
    share: int = 1

    @property
    def answer(self) -> Answer[None]:
        return NOTHING

    def perform(self, engine: Engine) -> None:
        attach(engine, self.alias, self.dsn, self.setup_dsn, self.share)


@dataclass(frozen=True)
class Detach(Command[None]):
    verb = "detach"
    alias: str

    @property
    def answer(self) -> Answer[None]:
        return NOTHING

    def perform(self, engine: Engine) -> None:
        detach(engine, self.alias)
