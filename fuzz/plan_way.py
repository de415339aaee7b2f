"""A view without Spark: its plan and its stages, evaluated purely, against PostgreSQL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import psycopg

from fuzz.binding import SEARCH_PATH, Database
from fuzz.judge import Rows, bag, difference
from fuzz.quick import evaluate
from fuzz.stages import Contents, Maintained, World
from fuzz.ways import Failure, Refused, rows_of
from fuzz.write import Written
from headrace.errors import UserError
from headrace.lifecycle.name_resolver import not_built_in
from headrace.plan.evaluate import Bag
from headrace.plan.operators import Operator, Scan
from headrace.query import BoundQuery, BoundTable, bind
from headrace.relations.definition import rules_of
from headrace.source.describe import describe, user_objects
from headrace.source.server import home_collation


class PlanWay:
    """Views are plans, kept by the rules of their stages."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        # Nothing is lost that anybody would want back.
        connection.execute("SET synchronous_commit = off")
        self.names: tuple[str, ...] = ()
        self.world: World = {}
        self.has_functions = False

    def start(self, setup: tuple[str, ...]) -> None:
        with self.connection.transaction():
            self.connection.execute("DROP SCHEMA IF EXISTS public CASCADE")
            self.connection.execute("CREATE SCHEMA public")
            for statement in setup:
                self.connection.execute(statement.encode())
        self.names = tuple(s.split()[2] for s in setup if s.startswith("CREATE TABLE"))
        self.has_functions = any(s.startswith("CREATE FUNCTION") for s in setup)
        self.moved()

    def create(self, name: str, written: Written) -> tuple[PlannedView, ...]:
        """A stream table that the view reads is a view here."""
        for _, needed, query in written.needed:
            self.connection.execute(f"CREATE VIEW {needed} AS {query}".encode())
        return (PlannedView(self, written.query),)

    def moved(self) -> None:
        self.world = contents(self.connection, self.names)

    def finish(self) -> None:
        pass


class PlannedView:
    """A view bound to the tables of a database, and kept up by the rules of its stages."""

    def __init__(self, way: PlanWay, query: str) -> None:
        self.way, self.query = way, query
        connection, world = way.connection, way.world
        described = connection.execute(query.encode()).description or ()
        try:
            rules = rules_of(home_collation(connection), {})
            bound = bind(query, Database(connection), rules=rules)
            own = user_objects(connection, query, SEARCH_PATH) if way.has_functions else ()
            if own:
                raise not_built_in(own[0])
        except UserError as error:
            raise Refused(f"{error.code}: {error.message}") from None
        except Exception as error:
            raise Failure(f"bind raises {type(error).__name__}", str(error)) from error
        self.types = [column.type for column in bound.plan.columns]
        names = [column.name for column in described]
        if names != list(bound.names):
            raise Failure("names", f"{bound.names} instead of {names}")
        self._check_types()
        wanted = self.answer()
        self._check_key(bound, wanted)
        for name, plan in (("plan as written", bound.written), ("improved plan", bound.plan)):
            rows = _evaluated(name, plan, world)
            _compare(name, bag(rows.elements(), self.types), wanted)
        self.last = wanted
        try:
            self.maintained = Maintained(bound.plan, world)
        except Exception as error:
            raise Failure(f"stages raise {type(error).__name__}", str(error)) from error
        _compare("stages at first", self.shown(), wanted)

    def refresh(self) -> bool:
        wanted = self.answer()
        try:
            self.maintained.refresh(self.way.world)
        except Exception as error:
            raise Failure(f"a change raises {type(error).__name__}", str(error)) from error
        _compare("after a change", self.shown(), wanted)
        changed, self.last = wanted != self.last, wanted
        return changed

    def verify(self) -> None:
        hidden = self.maintained.difference()
        if hidden is not None:
            raise Failure("hidden state differs from a full evaluation", hidden)

    def shown(self) -> Rows:
        rows = self.maintained.rows
        if any(weight < 0 for weight in rows.values()):
            raise Failure("negative weights")
        return bag(rows.elements(), self.types)

    def answer(self) -> Rows:
        """PostgreSQL's own."""
        return bag(rows_of(self.way.connection, self.query), self.types)

    def _check_types(self) -> None:
        nulls = ", ".join(f"NULL::{type_.sql}" for type_ in self.types)
        ours = [(c.oid, c.typmod) for c in describe(self.way.connection, f"SELECT {nulls}")]
        found = describe(self.way.connection, self.query)
        if ours != [(column.oid, column.typmod) for column in found]:
            declared = [column.declared for column in found]
            raise Failure("types", f"{[t.sql for t in self.types]} instead of {declared}")

    def _check_key(self, bound: BoundQuery, rows: Rows) -> None:
        if bound.key is None:
            return
        keys = Counter(tuple(row[i] for i in bound.key) for row in rows.elements())
        if any(times > 1 for times in keys.values()):
            raise Failure("a key is not unique", str(bound.key))


def reader_of(world: World) -> Callable[[Scan], Bag]:
    """The rows of scans in tables as they are."""

    def read(scan: Scan) -> Bag:
        contents = world[scan.relation]
        places = [contents.fields.index(physical) for physical, _ in scan.fields]
        rows: Bag = Counter()
        for values, weight in contents.rows.items():
            rows[tuple(values[i] for i in places)] += weight
        return rows

    return read


def _evaluated(name: str, plan: Operator, world: World) -> Bag:
    try:
        return evaluate(plan, reader_of(world))
    except Exception as error:
        raise Failure(f"{name} raises {type(error).__name__}", str(error)) from error


def _compare(kind: str, got: Rows, wanted: Rows) -> None:
    if got != wanted:
        raise Failure(kind, difference(got, wanted))


def contents(connection: psycopg.Connection[Any], names: tuple[str, ...]) -> World:
    """The rows of tables as the evaluator sees them."""
    schema = Database(connection)
    world: dict[str, Contents] = {}
    for name in names:
        table = schema.resolve(None, name)
        assert isinstance(table, BoundTable)
        shown = ", ".join(
            f'"{c.name}"::text' if c.declared in ("jsonb", "uuid") else f'"{c.name}"'
            for c in table.columns
        )
        rows: Bag = Counter(
            tuple(_stored(value, c.declared) for value, c in zip(row, table.columns, strict=True))
            for row in connection.execute(f"SELECT {shown} FROM {name}".encode())
        )
        world[name] = Contents(tuple(c.physical for c in table.columns), rows)
    return world


def _stored(value: Any, declared: str) -> Any:
    """As it is kept: without the blanks of char(n), arrays as tuples."""
    if isinstance(value, list):
        return tuple(value)
    return value.rstrip(" ") if declared.startswith("character(") and value is not None else value
