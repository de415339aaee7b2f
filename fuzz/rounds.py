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
from fuzz.example import Example
from fuzz.generate import Generator
from fuzz.makers import MAKERS
from fuzz.relations import Relation
from fuzz.report import Report
from fuzz.schema import Keys, Table, insert, random_tables
from fuzz.shrink import Case, shrink
from fuzz.ways import Failure, Kept, Refused, Way, apply, failure_of
from fuzz.write import Written, write

ROWS = 12
LAGGING = 0.08
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
    pending: Batch = ()


@dataclass
class Rounds:
    """One run, on one way; `pure` is the way on which failures are made small first."""

    way: Way
    pure: Way | None
    report: Report
    size: Size
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
        tables = random_tables(random)
        keys = Keys()
        ddl = tuple(table.ddl for table in tables)
        self.way.start((*ddl, *(insert(random, table, ROWS, keys) for table in tables)))
        names = tuple(table.name for table in tables)
        generator = Generator(random, self.report.tried, tables, MAKERS)
        found: list[tuple[Failure, Case]] = []
        tries: list[Try] = []
        rows = dump(self.way.connection, names)
        for place in range(self.size.views):
            if time.monotonic() > end:
                break
            prefix = f"s{place}"
            relation = self._lively(generator, tables, prefix)
            try:
                kept = self._create(f"v{place}", relation, prefix)
                tries.append(Try(relation, prefix, kept, rows))
            except Refused as refused:
                self.report.refuse(str(refused), Case(ddl, (), relation, (), prefix).example.script)
            except Failure as failure:
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
                        self.report.pair(changed=kept_view.refresh())
                    one.rows, one.pending = rows, ()
                except Failure as failure:
                    tries.remove(one)
                    found.append((failure, self._case(ddl, one)))
            self._progress(f"batch {number + 1}, {len(found)} failures")
        for one in tries:
            try:
                for kept_view in one.kept:
                    kept_view.refresh()
                    kept_view.verify()
            except Failure as failure:
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
        for _ in range(LIVELY):
            relation = generator.view()
            if self._moves(generator.random, tables, write(relation, prefix)):
                break
        return relation

    def _moves(self, random: Random, tables: tuple[Table, ...], written: Written) -> bool:
        """Whether the answer is another one after a batch, which is then undone."""
        sql = self.way.connection
        with sql.transaction(force_rollback=True):
            try:
                for _, name, query in written.needed:
                    sql.execute(f"CREATE VIEW {name} AS {query}".encode())
                before = sorted(map(str, sql.execute(written.query.encode())))
                for statement in random_batch(random, tables, Keys(UNUSED)):
                    sql.execute(statement.encode())
                return before != sorted(map(str, sql.execute(written.query.encode())))
            except psycopg.Error as error:
                raise ValueError(f"PostgreSQL does not take {written}") from error

    def _create(self, name: str, relation: Relation, prefix: str) -> tuple[Kept, ...]:
        written = write(relation, prefix)
        self.report.attempt(relation)
        kept = self.way.create(name, written)
        self.report.add(relation, written)
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
