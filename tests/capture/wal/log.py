"""The log of a test's database, from the moment its tables are followed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import psycopg
import pyarrow as pa
from psycopg import sql

from headrace.capture.wal.decoder import Decoded, Decoder, Images
from headrace.capture.wal.value_decoders import stored_images
from headrace.source.connection import Database
from headrace.source.introspect import find_table
from headrace.source.reading import read_sql, relation_sql, to_stored
from headrace.source.table import SourceTable

PEEK = sql.SQL("""
SELECT data FROM pg_logical_slot_peek_binary_changes({slot}, NULL, NULL,
    'proto_version', '1', 'publication_names', {publication})""")


class Log:
    """A publication and a slot of a test's own, both dropped by `close`."""

    def __init__(self, database: Database, application: psycopg.Connection[Any]) -> None:
        self.database = database
        self.application = application
        self.slot = f"decoded_{application.info.dbname}"
        self.followed = False

    def follow(self, *names: str) -> None:
        """Publish tables and begin to keep the log."""
        tables = sql.SQL(", ").join(map(sql.Identifier, names))
        self.application.execute(
            sql.SQL("CREATE PUBLICATION {} FOR TABLE {} WITH (publish_via_partition_root)").format(
                sql.Identifier(self.slot), tables
            )
        )
        create = "SELECT pg_create_logical_replication_slot(%s, 'pgoutput')"
        self.application.execute(create, [self.slot])
        self.followed = True

    def close(self) -> None:
        if self.followed:
            self.application.execute("SELECT pg_drop_replication_slot(%s)", [self.slot])

    def messages(self) -> pa.Array:
        """All messages since tables are followed, of committed transactions."""
        slot = sql.Literal(self.slot)
        data = self.database.arrow(PEEK.format(slot=slot, publication=slot))["data"]
        return pa.concat_arrays(data.chunks) if data.num_chunks else pa.array([], pa.binary())

    def decoded(self) -> Decoded:
        return Decoder().feed(self.messages())

    def images(self, name: str) -> list[Images]:
        """All images of a table."""
        return [each for each in self.decoded().images if each.relation.name == name]

    def table(self, name: str, schema: str = "public") -> SourceTable:
        with self.database.session() as connection:
            return find_table(connection, schema, name)

    def live(self, table: SourceTable) -> pa.Table:
        """The rows of a table as a first copy reads them."""
        relation = relation_sql(table.schema, table.name).replace("ONLY ", "", 1)
        return to_stored(self.database.arrow(read_sql(relation, table.stored)), table.stored)

    def changes(self, table: SourceTable) -> pa.Table:
        """The weighted rows of the log."""
        return pa.concat_tables(stored_images(each, table) for each in self.images(table.name))


def bag(data: pa.Table) -> Counter[tuple[Any, ...]]:
    """How often each row is there, by its weight if it has one; rows of no weight are left out."""
    found: Counter[tuple[Any, ...]] = Counter()
    weighted = (
        data
        if "_weight" in data.column_names
        else data.append_column("_weight", pa.array([1] * len(data), pa.int64()))
    )
    names = [name for name in weighted.column_names if name != "_weight"]
    for row in weighted.to_pylist():
        # As text, in which NaN is itself and −0.0 is not 0.0.
        found[tuple(repr(row[name]) for name in names)] += row["_weight"]
    return Counter({row: weight for row, weight in found.items() if weight})
