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
    "exact": (
        "numeric",
        "numeric(4,2)",
        "numeric(38,0)",
        "numeric(38,2)",
        "numeric(38,3)",
        "numeric(38,10)",
        "numeric(30,20)",
        "numeric(20,18)",
        "numeric(38,37)",
    ),
    "float": ("float8",),
    "text": ('text COLLATE "C"', "text", "varchar(12)", "varchar"),
    "char": ("char(3)",),
    "bool": ("boolean",),
    "date": ("date",),
    "timestamp": ("timestamp",),
    "json": ("jsonb",),
    "jsons": ("jsonb",),
}
# Rows of tables with a key have the ids below this, as far as others do not have them.
KEYS = 12
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
    """The keys that rows are moved to; never one twice, and none that a new row has."""

    last: int = 100

    def next(self) -> int:
        self.last += 1
        return self.last


def random_tables(random: Random, count: int = 5, *, text: str | None = None) -> tuple[Table, ...]:
    """Tables that share some columns and differ in the rest.

    These are id (a small number), g (a group), k (the id of a row elsewhere, mostly) and e, a
    number of which each table keeps other digits. `text` is the type of text everywhere.
    """
    kinds = list(DECLARATIONS)
    random.shuffle(kinds)
    tables = []
    for number in range(count):
        # Every kind is in some table; three more are drawn for each.
        own = kinds[number::count] + random.choices(list(DECLARATIONS), k=2)
        columns = [TableColumn(name, "int", "int") for name in ("id", "g", "k")]
        columns.append(TableColumn("e", "exact", random.choice(DECLARATIONS["exact"])))
        for letter, kind in zip(LETTERS, own, strict=False):
            declared = random.choice(DECLARATIONS[kind])
            if kind == "text" and text is not None:
                declared = text
            columns.append(TableColumn(letter, kind, declared))
        tables.append(Table(f"t{number}", tuple(columns), keyed=number % 2 == 0))
    return tuple(tables)


def insert(random: Random, table: Table, count: int) -> str:
    """An INSERT of random rows, some of them twice where there is no key."""
    rows: list[str] = []
    for _ in range(count):
        values = [stored(random, column.kind, 0.15, column.declared) for column in table.columns]
        if random.random() < 0.85:
            values[2] = str(random.randrange(KEYS))
        if table.keyed:
            values[0] = str(random.randrange(KEYS))
        elif rows and random.random() < 0.2:
            rows.append(random.choice(rows))
            continue
        rows.append(f"({', '.join(values)})")
    known = " ON CONFLICT DO NOTHING" if table.keyed else ""
    return f"INSERT INTO {table.name} VALUES {', '.join(rows)}{known}"
