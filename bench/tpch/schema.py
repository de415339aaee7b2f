"""The eight tables of TPC-H as the standard declares them, with their primary keys.

Foreign keys are left out: the changes come table by table, in an order of their own.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

TABLES = {
    "region": """
        r_regionkey integer PRIMARY KEY, r_name char(25) NOT NULL, r_comment varchar(152)""",
    "nation": """
        n_nationkey integer PRIMARY KEY, n_name char(25) NOT NULL, n_regionkey integer NOT NULL,
        n_comment varchar(152)""",
    "part": """
        p_partkey integer PRIMARY KEY, p_name varchar(55) NOT NULL, p_mfgr char(25) NOT NULL,
        p_brand char(10) NOT NULL, p_type varchar(25) NOT NULL, p_size integer NOT NULL,
        p_container char(10) NOT NULL, p_retailprice numeric(15,2) NOT NULL,
        p_comment varchar(23) NOT NULL""",
    "supplier": """
        s_suppkey integer PRIMARY KEY, s_name char(25) NOT NULL, s_address varchar(40) NOT NULL,
        s_nationkey integer NOT NULL, s_phone char(15) NOT NULL, s_acctbal numeric(15,2) NOT NULL,
        s_comment varchar(101) NOT NULL""",
    "partsupp": """
        ps_partkey integer, ps_suppkey integer, ps_availqty integer NOT NULL,
        ps_supplycost numeric(15,2) NOT NULL, ps_comment varchar(199) NOT NULL,
        PRIMARY KEY (ps_partkey, ps_suppkey)""",
    "customer": """
        c_custkey integer PRIMARY KEY, c_name varchar(25) NOT NULL, c_address varchar(40) NOT NULL,
        c_nationkey integer NOT NULL, c_phone char(15) NOT NULL, c_acctbal numeric(15,2) NOT NULL,
        c_mktsegment char(10) NOT NULL, c_comment varchar(117) NOT NULL""",
    "orders": """
        o_orderkey bigint PRIMARY KEY, o_custkey integer NOT NULL, o_orderstatus char(1) NOT NULL,
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
        l_shipmode char(10) NOT NULL, l_comment varchar(44) NOT NULL,
        PRIMARY KEY (l_orderkey, l_linenumber)""",
}


def create_tables(connection: psycopg.Connection[Any]) -> None:
    for name, columns in TABLES.items():
        connection.execute(f"CREATE TABLE {name} ({columns})")


def load(connection: psycopg.Connection[Any], folder: Path) -> int:
    """Fill the tables from the generator's files, <table>.csv; the number of rows."""
    rows = 0
    for name in TABLES:
        with (folder / f"{name}.csv").open(newline="") as file:
            header = next(csv.reader([file.readline()]))
            copy = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(
                sql.Identifier(name), sql.SQL(", ").join(map(sql.Identifier, header))
            )
            with connection.cursor() as cursor, cursor.copy(copy) as stream:
                for line in file:
                    stream.write(line)
                    rows += 1
    connection.execute("ANALYZE")
    return rows
