"""Random batches of changes: each is the statements of one transaction."""

from __future__ import annotations

from random import Random

from fuzz.kinds import stored
from fuzz.schema import KEYS, Keys, Table, insert

Batch = tuple[str, ...]


def random_batch(random: Random, tables: tuple[Table, ...], keys: Keys) -> Batch:
    """Mostly changes of several tables; now and then nothing, or all of a table."""
    chance = random.random()
    if chance < 0.03:
        return ()
    if chance < 0.05:
        return (f"UPDATE {random.choice(tables).name} SET g = g",)
    table = random.choice(tables)
    if chance < 0.09:
        return (f"TRUNCATE {table.name}", insert(random, table, random.randint(4, 9)))
    if chance < 0.12:
        return (f"DELETE FROM {table.name}", insert(random, table, 5))
    batch: list[str] = []
    for one in random.sample(tables, random.randint(len(tables) - 1, len(tables))):
        batch += _changes(random, one, keys)
    return tuple(batch)


def _changes(random: Random, table: Table, keys: Keys) -> list[str]:
    name, group = table.name, random.randint(0, 3)
    column = random.choice(table.columns[1:])
    some = f"WHERE ctid IN (SELECT ctid FROM {name} ORDER BY md5({name}::text || {group}) LIMIT "
    value = stored(random, column.kind, 0.2, column.declared)
    statements = [
        f"UPDATE {name} SET {column.name} = {value} {some}3)",
        f"UPDATE {name} SET {column.name} = {value} WHERE g = {group}",
        f"UPDATE {name} SET g = {stored(random, 'int', 0.2)} {some}2)",
        f"UPDATE {name} SET g = {group + 1} WHERE g = {group}",
        f"UPDATE {name} SET k = {random.randrange(KEYS)} {some}4)",
        f"DELETE FROM {name} WHERE g = {group}",
        f"DELETE FROM {name} WHERE g IS NULL",
        f"DELETE FROM {name} {some}3)",
    ]
    if table.keyed:
        statements.append(f"UPDATE {name} SET id = {keys.next()} {some}1)")
    else:
        columns = ", ".join(column.name for column in table.columns)
        statements += [
            f"INSERT INTO {name} ({columns}) SELECT {columns} FROM {name} {some}2)",
            f"UPDATE {name} SET id = id + 1 {some}3)",
        ]
    chosen = random.sample(statements, random.choice((1, 2, 3)))
    # Tables neither run empty nor grow without end.
    chosen.append(insert(random, table, random.randint(3, 6)))
    chosen.append(
        f"DELETE FROM {name} WHERE ctid IN"
        f" (SELECT ctid FROM {name} ORDER BY md5({name}::text) OFFSET 16)"
    )
    random.shuffle(chosen)
    return chosen
