"""The statements about stream tables, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias


@dataclass(frozen=True)
class TextPosition:
    """Where a statement begins in its text, counted from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


@dataclass(frozen=True)
class CreateStatement:
    """CREATE [OR REPLACE] STREAM TABLE name [WITH (option = value, …)] AS query."""

    place: TextPosition
    name: str
    query: str
    options: Mapping[str, str | None] = field(default_factory=dict)
    replace: bool = False


@dataclass(frozen=True)
class AlterStatement:
    """ALTER STREAM TABLE name SET (option = value, …) | AS query | RENAME TO name.

    Or SUSPEND, or RESUME [APPLY | REBUILD], as `act` and `mode`.
    """

    place: TextPosition
    name: str
    options: Mapping[str, str | None] = field(default_factory=dict)
    query: str | None = None
    rename_to: str | None = None
    act: Literal["suspend", "resume"] | None = None
    mode: Literal["apply", "rebuild"] | None = None


@dataclass(frozen=True)
class DropStatement:
    """DROP STREAM TABLE [IF EXISTS] name [CASCADE | RESTRICT]."""

    place: TextPosition
    name: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class RefreshStatement:
    """REFRESH STREAM TABLE name [FULL]."""

    place: TextPosition
    name: str
    full: bool = False


@dataclass(frozen=True)
class VerifyStatement:
    """VERIFY STREAM TABLE name [SOURCE] [ORACLE name] [SAMPLE 'sample']."""

    place: TextPosition
    name: str
    source: bool = False
    oracle: str = "spark"
    sample: str | None = None


Statement: TypeAlias = (
    CreateStatement | AlterStatement | DropStatement | RefreshStatement | VerifyStatement
)
