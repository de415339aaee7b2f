"""Generated rows of all 21 tables, and batches that insert, update and delete some of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import psycopg

from bench.job.planted import planted
from bench.job.schema import REFERENCES, TABLES, columns
from bench.job.values import FIXED, KEYWORDS, VALUES

# Rows of a table for each title.
PER_TITLE = {
    "keyword": 0.2,
    "company_name": 0.2,
    "char_name": 0.4,
    "name": 0.6,
    "title": 1.0,
    "aka_name": 0.6,
    "aka_title": 0.4,
    "cast_info": 5.0,
    "complete_cast": 0.6,
    "movie_companies": 2.0,
    "movie_info": 4.0,
    "movie_info_idx": 1.5,
    "movie_keyword": 3.0,
    "movie_link": 0.6,
    "person_info": 1.0,
}
# Titles of a scale of 1.
TITLES = 50_000

Sql = psycopg.Connection[Any]
Row = dict[str, Any]


def skewed(random: Random, keys: Sequence[int]) -> int:
    """Return one of some keys, the first ones more often."""
    return keys[int(len(keys) * random.random() ** 1.5)]


@dataclass
class Movies:
    """The database of one run. What it holds, and what a batch does, follows from the seed."""

    titles: int
    rows: int
    seed: int = 1
    keys: dict[str, list[int]] = field(default_factory=dict)

    def load(self, sql: Sql) -> dict[str, int]:
        """Create and fill the tables; return the rows of each."""
        random = Random(f"{self.seed}")  # noqa: S311
        for table, described in TABLES.items():
            sql.execute(f"CREATE TABLE {table} (id integer PRIMARY KEY, {described})".encode())
            count = round(self.titles * PER_TITLE.get(table, 0)) or len(FIXED[table])
            new = [self.row(random, table, number) for number in range(1, count + 1)]
            self.keys[table] = [row["id"] for row in new]
            self.insert(sql, table, new)
        for table in TABLES:
            for column in set(REFERENCES) & set(columns(table)):
                sql.execute(f"CREATE INDEX ON {table} ({column})".encode())
        sql.execute("VACUUM (ANALYZE)")
        return {table: len(keys) for table, keys in self.keys.items()}

    def row(self, random: Random, table: str, number: int) -> Row:
        """Return a new row; what it refers to is skewed: the first rows are referred to most."""
        row: Row = dict.fromkeys(columns(table)) | {"id": number}
        if table in FIXED:
            words = FIXED[table]
            word = words[number - 1] if number <= len(words) else f"{number}"
            return row | {columns(table)[1]: word}
        if table == "keyword" and number <= len(KEYWORDS):
            return row | {"keyword": KEYWORDS[number - 1]}
        for column, other in REFERENCES.items():
            if column in row:
                row[column] = skewed(random, self.keys[other])
        return row | VALUES[table](random) | planted(table, number)

    def change(self, sql: Sql, number: int) -> dict[str, int]:
        """Write one batch over all tables, in one transaction; return the rows of each."""
        random = Random(f"{self.seed} {number}")  # noqa: S311
        written: dict[str, int] = dict.fromkeys(TABLES, 0)
        with sql.transaction():
            for table in TABLES:
                count = max(1, min(self.rows, len(self.keys[table]) // 10))
                top = self.keys[table][-1]
                new = [self.row(random, table, top + 1 + i) for i in range(count)]
                self.insert(sql, table, new)
                self.keys[table] += [row["id"] for row in new]
                written[table] += count + self._update(sql, random, table, count)
            for table in TABLES:
                count = max(1, min(self.rows, len(self.keys[table]) // 10))
                if table in FIXED:
                    gone = self.keys[table][-1:]
                elif table in REFERENCES.values():
                    # With such a row goes all that refers to it.
                    gone = random.sample(self.keys[table], max(1, count // 5))
                else:
                    gone = sorted({skewed(random, self.keys[table]) for _ in range(count)})
                self._delete(sql, table, gone, written)
        return written

    def insert(self, sql: Sql, table: str, rows: Iterable[Row]) -> None:
        names = columns(table)
        copy = f"COPY {table} ({', '.join(names)}) FROM STDIN"
        with sql.cursor() as cursor, cursor.copy(copy.encode()) as stream:
            for row in rows:
                stream.write_row([row[name] for name in names])

    def _update(self, sql: Sql, random: Random, table: str, count: int) -> int:
        """Give some rows the values of new ones, in a column or two."""
        if table in FIXED:
            # The words that queries name stay: only the row that the batch inserted is changed.
            last, word = self.keys[table][-1], columns(table)[1]
            sql.execute(f"UPDATE {table} SET {word} = 'other' WHERE id = %s".encode(), (last,))
            return 1
        for key in sorted({skewed(random, self.keys[table]) for _ in range(count)}):
            new = self.row(random, table, key)
            names = [name for name in columns(table)[1:] if new[name] is not None]
            names = random.sample(names, min(len(names), 2))
            sets = ", ".join(f"{name} = %s" for name in names)
            values = [*(new[name] for name in names), key]
            sql.execute(f"UPDATE {table} SET {sets} WHERE id = %s".encode(), values)
        return count

    def _delete(self, sql: Sql, table: str, gone: Sequence[int], written: dict[str, int]) -> None:
        """Delete rows with all that refers to them."""
        for other in TABLES:
            for column, to in REFERENCES.items():
                if to == table and column in columns(other):
                    found = sql.execute(
                        f"SELECT id FROM {other} WHERE {column} = ANY(%s)".encode(), (list(gone),)
                    ).fetchall()
                    if found:
                        self._delete(sql, other, [row[0] for row in found], written)
        count = sql.execute(f"DELETE FROM {table} WHERE id = ANY(%s)".encode(), (list(gone),))
        written[table] += count.rowcount
        self.keys[table] = sorted(set(self.keys[table]) - set(gone))
