"""A command as data: what it does, and how it and its result become JSON and come back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Self, TypeVar

from headrace.engine import Engine

R = TypeVar("R")


@dataclass(frozen=True)
class Answer(Generic[R]):
    """The encoding of a result as JSON, and its decoding."""

    encode: Callable[[R], Any]
    decode: Callable[[Any], R]


@dataclass(frozen=True)
class Command(ABC, Generic[R]):
    """Something that is done under the writer lease, and its result."""

    verb: ClassVar[str]
    # Whether names in it are looked up in the schemas of a search path.
    looks_up: ClassVar[bool] = False

    @property
    @abstractmethod
    def answer(self) -> Answer[R]:
        """The encoding of the result."""

    @abstractmethod
    def perform(self, engine: Engine) -> R:
        """Perform the command here; if this raises `lease-held`, nothing was done."""

    def encode(self) -> dict[str, Any]:
        """Return the fields in JSON."""
        return dict(vars(self))

    @classmethod
    def decode(cls, value: Mapping[str, Any]) -> Self:
        return cls(**value)
