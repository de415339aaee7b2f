"""What the ways of trying a view have in common."""

from __future__ import annotations

from typing import Any, Protocol

import psycopg
from psycopg.types.string import TextLoader

from fuzz.changes import Batch
from fuzz.example import Example
from fuzz.write import Written


class Failure(AssertionError):
    """What went wrong: a kind that stays the same while the example shrinks, and the details."""

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(f"{kind}: {detail}" if detail else kind)
        self.kind = kind


class Refused(Exception):
    """The view is refused, for a reason."""


class Kept(Protocol):
    """A view that is kept fresh; each method raises Failure where it is not what it should be."""

    def refresh(self) -> bool:
        """Take in what changed; whether the result did."""

    def verify(self) -> None:
        """Compare it by the slower oracle, too."""


class Way(Protocol):
    """How views are created and kept over the tables of one database."""

    connection: psycopg.Connection[Any]

    def start(self, setup: tuple[str, ...]) -> None:
        """Only these tables, in an empty schema."""

    def create(self, name: str, written: Written) -> tuple[Kept, ...]:
        """The view and the stream tables that it reads, these first; or Refused, or Failure."""

    def moved(self) -> None:
        """The tables have changed."""

    def finish(self) -> None:
        """No view is needed any more."""


def connect(dsn: str) -> psycopg.Connection[Any]:
    """A connection for many different queries over few rows, which are not worth compiling."""
    options = "-c jit=off -c statement_timeout=20s"
    return psycopg.connect(dsn, autocommit=True, prepare_threshold=None, options=options)


def rows_of(connection: psycopg.Connection[Any], query: str) -> list[tuple[Any, ...]]:
    """A query's rows, with documents as the text that PostgreSQL prints."""
    with connection.cursor() as cursor:
        cursor.adapters.register_loader("jsonb", TextLoader)
        return cursor.execute(query.encode()).fetchall()


def apply(connection: psycopg.Connection[Any], batch: Batch) -> None:
    """The batch's statements in one transaction."""
    with connection.transaction():
        for statement in batch:
            connection.execute(statement.encode())


def run_example(way: Way, example: Example) -> None:
    """Raises what goes wrong with the example: Failure, Refused, or what PostgreSQL says."""
    way.start(example.setup)
    try:
        kept = way.create("v", Written(example.needed, example.query))
        for batch in example.batches:
            apply(way.connection, batch)
            way.moved()
            for one in kept:
                one.refresh()
        for one in kept:
            one.verify()
    finally:
        way.finish()


def failure_of(way: Way, example: Example) -> Failure | None:
    """How the example fails, run from the start; None if it does not, or is no valid SQL."""
    try:
        run_example(way, example)
    except Failure as failure:
        return failure
    except (Refused, psycopg.Error):
        return None
    return None
