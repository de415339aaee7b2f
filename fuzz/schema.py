"""Random tables: several types, with and without a primary key, and rows for them."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from fuzz.kinds import stored

# How each kind may be declared in a table.
DECLARATIONS = {
    "int": ("int", "int", "int"),
    "bigint": ("bigint",),
    "numeric": ("numeric(8,2)", "numeric(12,3)", "numeric"),
    "float": ("float8",),
    "text": ('text COLLATE "C"', "text", "varchar(12)", "varchar"),
    "char": ("char(3)",),
    "bool": ("boolean",),
    "date": ("date",),
    "timestamp": ("timestamp",),
    "json": ("jsonb",),
    "jsons": ("jsonb",),
}
LETTERS = ("x", "y", "z", "u", "v", "w")


@dataclass(frozen=True)
class TableColumn:
    name: str
    kind: str
    declared: str


@dataclass(frozen=True)
class Table:
    """A source. With a key its first column, `id`, is the primary key."""

    name: str
    columns: tuple[TableColumn, ...]
    keyed: bool

    @property
    def ddl(self) -> str:
        key = ", PRIMARY KEY (id)" if self.keyed else ""
        columns = ", ".join(f"{column.name} {column.declared}" for column in self.columns)
        return f"CREATE TABLE {self.name} ({columns}{key})"


@dataclass
class Keys:
    """The keys that are given to new rows; never one twice."""

    last: int = 0

    def next(self) -> int:
        self.last += 1
        return self.last


def random_tables(random: Random, count: int = 4) -> tuple[Table, ...]:
    """Tables that share the columns id (a small number) and g (a group) and differ in the rest."""
    kinds = list(DECLARATIONS)
    random.shuffle(kinds)
    tables = []
    for number in range(count):
        # Every kind is in some table; three more are drawn for each.
        own = kinds[number::count] + random.choices(list(DECLARATIONS), k=2)
        columns = [TableColumn("id", "int", "int"), TableColumn("g", "int", "int")]
        for letter, kind in zip(LETTERS, own, strict=False):
            columns.append(TableColumn(letter, kind, random.choice(DECLARATIONS[kind])))
        tables.append(Table(f"t{number}", tuple(columns), keyed=number % 2 == 0))
    return tuple(tables)


def insert(random: Random, table: Table, count: int, keys: Keys) -> str:
    """An INSERT of random rows, some of them twice where there is no key."""
    rows: list[str] = []
    for _ in range(count):
        values = [stored(random, column.kind, 0.15) for column in table.columns]
        if table.keyed:
            values[0] = str(keys.next())
        elif rows and random.random() < 0.2:
            rows.append(random.choice(rows))
            continue
        rows.append(f"({', '.join(values)})")
    return f"INSERT INTO {table.name} VALUES {', '.join(rows)}"
