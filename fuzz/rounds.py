"""Rounds: fresh tables, views over them, batches of changes, and what fails made small."""

from __future__ import annotations

import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

import psycopg

from fuzz.changes import Batch, random_batch
from fuzz.coverage import items_of
from fuzz.example import Example
from fuzz.generate import Generator
from fuzz.makers import MAKERS
from fuzz.refusals import expected
from fuzz.relations import Relation
from fuzz.report import Report, Shape
from fuzz.schema import Keys, Table, insert, random_tables
from fuzz.shadows import random_shadows
from fuzz.shapes import OPERATOR_OF
from fuzz.shapes import SHADOWED as SHADOWED_NAMES
from fuzz.shrink import Case, shrink
from fuzz.ways import Failure, Kept, Refused, Way, apply, failure_of
from fuzz.write import Written, write

ROWS = 14
LAGGING = 0.08
# A longer answer is of no more use.
MOST_ROWS = 1500
# How many rounds have names of the user that PostgreSQL prefers to its own.
SHADOWED = 0.12
# How many views are looked at for one whose result changes.
LIVELY = 3
# Keys that no table has.
UNUSED = 1_000_000
# A failure of a kind that was made small so often is only counted.
SHOWN = 3


@dataclass(frozen=True)
class Size:
    """How much is tried in a round."""

    views: int
    batches: int
    shrink_seconds: float = 60.0


@dataclass
class Try:
    """A view of a round: its tree, the prefix of what it needs, and what is kept of it.

    `rows` are those of the tables when it was last refreshed, `pending` what happened since.
    """

    relation: Relation
    prefix: str
    kept: tuple[Kept, ...]
    rows: tuple[str, ...]
    shapes: list[Shape]
    pending: Batch = ()


@dataclass
class Rounds:
    """One run, on one way; `pure` is the way on which failures are made small first."""

    way: Way
    pure: Way | None
    report: Report
    size: Size
    shape: str | None = None
    kinds: Counter[str] = field(default_factory=Counter)

    def run(self, seed: int, seconds: float, most: int | None = None) -> None:
        """Until the time is over, or so many views were tried."""
        end = time.monotonic() + seconds
        number = 0
        while time.monotonic() < end and (most is None or self.report.views < most):
            number += 1
            for failure, case in self._round(Random(f"{seed}/{number}"), end):  # noqa: S311
                self._small(f"{seed}/{number}", failure, case)
            sys.stderr.write(f"round {number}: {self.report.line}\n")

    def _round(self, random: Random, end: float) -> list[tuple[Failure, Case]]:
        shadowed = self.shape == SHADOWED_NAMES or random.random() < SHADOWED
        tables = random_tables(random, text="varchar" if shadowed else None)
        keys = Keys()
        shadows = random_shadows(random) if shadowed else ()
        ddl = (*(table.ddl for table in tables), *shadows)
        self.way.start((*ddl, *(insert(random, table, ROWS) for table in tables)))
        names = tuple(table.name for table in tables)
        generator = Generator(random, self.report.tried, tables, MAKERS)
        generator.terms.shadowed = shadowed
        found: list[tuple[Failure, Case]] = []
        tries: list[Try] = []
        rows = dump(self.way.connection, names)
        for place in range(self.size.views):
            if time.monotonic() > end:
                break
            prefix = f"s{place}"
            relation = self._lively(generator, tables, prefix)
            shapes = self.report.of(relation, shadowed=bool(shadows))
            try:
                kept = self._create(f"v{place}", relation, prefix, shapes)
                tries.append(Try(relation, prefix, kept, rows, shapes))
            except Refused as refused:
                script = Case(ddl, (), relation, (), prefix).example.script
                known = expected(str(refused), shadowed=bool(shadows))
                self.report.refuse(str(refused), script, shapes, expected=known)
            except Failure as failure:
                for shape in shapes:
                    shape.failed += 1
                found.append((failure, Case(ddl, rows, relation, (), prefix)))
        self._progress(f"{len(tries)} views created")
        for number in range(self.size.batches):
            if time.monotonic() > end:
                break
            batch = random_batch(random, tables, keys)
            apply(self.way.connection, batch)
            self.way.moved()
            rows = dump(self.way.connection, names)
            for one in list(tries):
                one.pending += batch
                # Some lag, and take in several epochs at once.
                if random.random() < LAGGING:
                    continue
                # A refresh of the last brings the others along.
                order = one.kept if random.random() < 0.5 else one.kept[::-1]
                try:
                    for kept_view in order:
                        self.report.pair(one.shapes, changed=kept_view.refresh())
                    one.rows, one.pending = rows, ()
                except Failure as failure:
                    tries.remove(one)
                    for shape in one.shapes:
                        shape.failed += 1
                    found.append((failure, self._case(ddl, one)))
            self._progress(f"batch {number + 1}, {len(found)} failures")
        for one in tries:
            try:
                for kept_view in one.kept:
                    kept_view.refresh()
                    kept_view.verify()
            except Failure as failure:
                for shape in one.shapes:
                    shape.failed += 1
                found.append((failure, self._case(ddl, one)))
        self.way.finish()
        return found

    def _case(self, ddl: tuple[str, ...], one: Try) -> Case:
        batches = (one.pending,) if one.pending else ()
        return Case(ddl, one.rows, one.relation, batches, one.prefix)

    def _progress(self, what: str) -> None:
        if self.pure is not None:
            sys.stderr.write(f"  {what}, {self.report.pairs} pairs\n")

    def _lively(self, generator: Generator, tables: tuple[Table, ...], prefix: str) -> Relation:
        """A view whose result a random batch changes, if a few tries find one."""
        tries = 0
        while True:
            relation = self._of_shape(generator)
            rows, moved = self._moves(generator.random, tables, write(relation, prefix))
            if rows > MOST_ROWS:
                continue
            tries += 1
            if moved or tries == LIVELY:
                return relation

    def _of_shape(self, generator: Generator) -> Relation:
        first = None if self.shape is None else OPERATOR_OF.get(self.shape)
        found = generator.view(first)
        # Names of the user are there for a whole round.
        while self.shape not in (None, SHADOWED_NAMES) and self.shape not in items_of(found):
            found = generator.view(first)
        return found

    def _moves(
        self, random: Random, tables: tuple[Table, ...], written: Written
    ) -> tuple[int, bool]:
        """How long the answer is, and whether it changes by a batch, which is then undone."""
        sql = self.way.connection
        with sql.transaction(force_rollback=True):
            try:
                for _, name, query in written.needed:
                    sql.execute(f"CREATE VIEW {name} AS {query}".encode())
                before = sorted(map(str, sql.execute(written.query.encode())))
                for statement in random_batch(random, tables, Keys(UNUSED)):
                    sql.execute(statement.encode())
                after = sorted(map(str, sql.execute(written.query.encode())))
                return max(len(before), len(after)), before != after
            except psycopg.Error as error:
                raise ValueError(f"PostgreSQL does not take {written}") from error

    def _create(
        self, name: str, relation: Relation, prefix: str, shapes: list[Shape]
    ) -> tuple[Kept, ...]:
        written = write(relation, prefix)
        self.report.attempt(relation, shapes)
        kept = self.way.create(name, written)
        self.report.add(relation, written, shapes)
        return kept

    def _small(self, seed: str, failure: Failure, case: Case) -> None:
        """Report the failure with the smallest case of its kind that can be found."""
        self.kinds[failure.kind] += 1
        if self.kinds[failure.kind] > SHOWN:
            self.report.fail(seed, str(failure), "")
            return
        for way in (self.pure, self.way):
            if way is None:
                continue
            again = failure_of(way, case.example)
            if again is None:
                continue

            def fails(example: Example, way: Way = way, kind: str = again.kind) -> bool:
                found = failure_of(way, example)
                return found is not None and found.kind == kind

            case = shrink(case, fails, self.size.shrink_seconds)
            failure = failure_of(way, case.example) or failure
            break
        self.report.fail(seed, str(failure), case.example.script)


def dump(connection: psycopg.Connection[Any], names: tuple[str, ...]) -> tuple[str, ...]:
    """An INSERT for every row."""
    statements: list[str] = []
    for name in names:
        columns = connection.execute(f"SELECT * FROM {name} LIMIT 0".encode()).description or ()
        shown = " || ', ' || ".join(f"quote_nullable({c.name}::text)" for c in columns)
        for (row,) in connection.execute(f"SELECT {shown} FROM {name}".encode()):
            statements.append(f"INSERT INTO {name} VALUES ({row})")
    return tuple(statements)
