"""The eight tables of TPC-H as the standard declares them, with keys and indexes.

Foreign keys are left out: the changes come table by table, in an order of their own. Their columns
have indexes, though, as they would where the keys are declared.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Lock
from typing import Any

import psycopg
from psycopg import sql

TABLES = {
    "region": """
        r_regionkey integer, r_name char(25) NOT NULL, r_comment varchar(152)""",
    "nation": """
        n_nationkey integer, n_name char(25) NOT NULL, n_regionkey integer NOT NULL,
        n_comment varchar(152)""",
    "part": """
        p_partkey integer, p_name varchar(55) NOT NULL, p_mfgr char(25) NOT NULL,
        p_brand char(10) NOT NULL, p_type varchar(25) NOT NULL, p_size integer NOT NULL,
        p_container char(10) NOT NULL, p_retailprice numeric(15,2) NOT NULL,
        p_comment varchar(23) NOT NULL""",
    "supplier": """
        s_suppkey integer, s_name char(25) NOT NULL, s_address varchar(40) NOT NULL,
        s_nationkey integer NOT NULL, s_phone char(15) NOT NULL, s_acctbal numeric(15,2) NOT NULL,
        s_comment varchar(101) NOT NULL""",
    "partsupp": """
        ps_partkey integer, ps_suppkey integer, ps_availqty integer NOT NULL,
        ps_supplycost numeric(15,2) NOT NULL, ps_comment varchar(199) NOT NULL""",
    "customer": """
        c_custkey integer, c_name varchar(25) NOT NULL, c_address varchar(40) NOT NULL,
        c_nationkey integer NOT NULL, c_phone char(15) NOT NULL, c_acctbal numeric(15,2) NOT NULL,
        c_mktsegment char(10) NOT NULL, c_comment varchar(117) NOT NULL""",
    "orders": """
        o_orderkey bigint, o_custkey integer NOT NULL, o_orderstatus char(1) NOT NULL,
        o_totalprice numeric(15,2) NOT NULL, o_orderdate date NOT NULL,
        o_orderpriority char(15) NOT NULL, o_clerk char(15) NOT NULL,
        o_shippriority integer NOT NULL, o_comment varchar(79) NOT NULL""",
    "lineitem": """
        l_orderkey bigint, l_partkey integer NOT NULL, l_suppkey integer NOT NULL,
        l_linenumber integer, l_quantity numeric(15,2) NOT NULL,
        l_extendedprice numeric(15,2) NOT NULL, l_discount numeric(15,2) NOT NULL,
        l_tax numeric(15,2) NOT NULL, l_returnflag char(1) NOT NULL,
        l_linestatus char(1) NOT NULL, l_shipdate date NOT NULL, l_commitdate date NOT NULL,
        l_receiptdate date NOT NULL, l_shipinstruct char(25) NOT NULL,
        l_shipmode char(10) NOT NULL, l_comment varchar(44) NOT NULL""",
}

KEYS = {
    "region": "r_regionkey",
    "nation": "n_nationkey",
    "part": "p_partkey",
    "supplier": "s_suppkey",
    "partsupp": "ps_partkey, ps_suppkey",
    "customer": "c_custkey",
    "orders": "o_orderkey",
    "lineitem": "l_orderkey, l_linenumber",
}

# The columns that refer to other tables; those that a primary key begins with have its index.
INDEXES = (
    ("nation", "n_regionkey"),
    ("supplier", "s_nationkey"),
    ("customer", "c_nationkey"),
    ("partsupp", "ps_suppkey"),
    ("orders", "o_custkey"),
    ("lineitem", "l_partkey, l_suppkey"),
    ("lineitem", "l_suppkey"),
)

BLOCK = 1 << 20


def is_loaded(connection: psycopg.Connection[Any]) -> bool:
    """Whether the tables are there with all that belongs to them: the last index is."""
    table, _ = INDEXES[-1]
    found = connection.execute(
        "SELECT count(*) FROM pg_index WHERE indrelid = to_regclass(%s)", (table,)
    ).fetchone()
    wanted = 1 + sum(one == table for one, _ in INDEXES)
    return found is not None and found[0] == wanted


def create_tables(connection: psycopg.Connection[Any]) -> None:
    """The tables, without keys: those come with `add_keys`, when the rows are there."""
    for name, columns in TABLES.items():
        connection.execute(f"CREATE TABLE {name} ({columns})")


def load(connection: psycopg.Connection[Any], folder: Path) -> int:
    """Fill the tables from the generator's files, <table>.csv; the number of rows.

    Two connections take turns with the blocks of a file: the server's side is the slower one.
    """
    with ExitStack() as stack:
        others = [stack.enter_context(psycopg.connect(connection.info.dsn)) for _ in range(2)]
        return sum(_load(others, name, folder / f"{name}.csv") for name in TABLES)


def _load(connections: list[psycopg.Connection[Any]], name: str, path: Path) -> int:
    with path.open("rb") as file, ThreadPoolExecutor(len(connections)) as pool:
        header = file.readline().decode().strip().split(",")
        copy = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(
            sql.Identifier(name), sql.SQL(", ").join(map(sql.Identifier, header))
        )
        turn = Lock()

        def block() -> bytes:
            with turn:
                return file.read(BLOCK) + file.readline()

        def fill(connection: psycopg.Connection[Any]) -> int:
            with connection.cursor() as cursor:
                with cursor.copy(copy) as stream:
                    while lines := block():
                        stream.write(lines)
                connection.commit()
                return cursor.rowcount

        return sum(pool.map(fill, connections))


def add_keys(connection: psycopg.Connection[Any]) -> None:
    """Primary keys and indexes, and what the planner knows about the rows."""
    for name, columns in KEYS.items():
        connection.execute(f"ALTER TABLE {name} ADD PRIMARY KEY ({columns})".encode())
    for name, columns in INDEXES:
        connection.execute(f"CREATE INDEX ON {name} ({columns})".encode())
    connection.execute("VACUUM (ANALYZE)")
