"""Views as stream tables of a project: what is served, against PostgreSQL in the same snapshot."""

from __future__ import annotations

import re
from typing import Any

import psycopg

import headrace
from fuzz.judge import Rows, bag, difference
from fuzz.shadows import dropped
from fuzz.ways import Failure, Refused, rows_of
from fuzz.write import Written
from headrace.errors import HeadraceError, UserError
from headrace.types import Type

INCREMENTAL = ("DIFFERENTIAL", "SKIPPED")


def failure(act: str, error: HeadraceError) -> Failure:
    """An error of the library; Spark's own class of errors is part of its kind."""
    found = re.search(r"\[([A-Z_.]+)\]", str(error))
    return Failure(f"{act} raises {error.code}{' ' + found[1] if found else ''}", str(error))


class SparkWay:
    """Views are stream tables of one project."""

    def __init__(self, hr: headrace.Headrace, connection: psycopg.Connection[Any]) -> None:
        self.hr = hr
        self.connection = connection
        self.setup: tuple[str, ...] = ()
        self.tables: tuple[str, ...] = ()
        self.made: list[tuple[str, str]] = []

    def start(self, setup: tuple[str, ...]) -> None:
        self.setup = setup
        for statement in setup:
            self.connection.execute(statement.encode())
        self.tables = tuple(s.split()[2] for s in setup if s.startswith("CREATE TABLE"))

    def create(self, name: str, written: Written) -> tuple[ServedView, ...]:
        kept: list[ServedView] = []
        for form, needed, query in written.needed:
            if form == "view":
                self.connection.execute(f"CREATE VIEW {needed} AS {query}".encode())
                self.made.append(("view", needed))
            else:
                kept.append(self._create(needed, query))
        kept.append(self._create(name, written.query))
        return tuple(kept)

    def _create(self, name: str, query: str) -> ServedView:
        try:
            self.hr.create_stream_table(name, query)
        except UserError as error:
            raise Refused(f"{error.code}: {error.message}") from error
        except HeadraceError as error:
            raise failure("create", error) from error
        self.made.append(("stream table", name))
        return ServedView(self, name, query)

    def moved(self) -> None:
        pass

    def finish(self) -> None:
        for form, name in reversed(self.made):
            if form == "view":
                self.connection.execute(f"DROP VIEW {name}".encode())
            else:
                self.hr.drop_stream_table(name)
        for name in self.tables:
            self.connection.execute(f"DROP TABLE {name}".encode())
        for statement in dropped(self.setup):
            self.connection.execute(statement.encode())
        self.made, self.tables = [], ()


class ServedView:
    """One stream table."""

    def __init__(self, way: SparkWay, name: str, query: str) -> None:
        self.way, self.name, self.query = way, name, query
        table = way.hr._engine.catalog.state().stream_table("public", name)  # noqa: SLF001
        assert table is not None
        self.types: list[Type] = [column.type for column in table.columns]
        self.last = self._compare("at first")

    def refresh(self) -> bool:
        try:
            refresh = self.way.hr.refresh(self.name)
        except HeadraceError as error:
            raise failure("refresh", error) from error
        if refresh.mode not in INCREMENTAL:
            raise Failure(f"refreshed {refresh.mode}", refresh.reason)
        before, self.last = self.last, self._compare("after a change")
        return before != self.last

    def verify(self) -> None:
        try:
            receipt = self.way.hr.verify(self.name)
        except HeadraceError as error:
            raise failure("verify", error) from error
        if not receipt.equal:
            raise Failure("verify", str(receipt.detail))

    def _compare(self, when: str) -> Rows:
        """PostgreSQL's answer, which has to be what is served."""
        sql = self.way.connection
        with sql.transaction():
            sql.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            served = bag(rows_of(sql, f"SELECT * FROM {self.name}"), self.types)
            wanted = bag(rows_of(sql, self.query), self.types)
        if served != wanted:
            raise Failure(when, difference(served, wanted))
        return wanted
