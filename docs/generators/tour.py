"""The tour's example, really run: every block of tour.md is taken from a project on its way.

Names that differ from run to run (relation ids, oids, file names) are replaced by readable ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
from deltalake import DeltaTable

import headrace
from docs.generators.blocks import fenced, text_table
from headrace.catalog import State
from headrace.catalog.records import Relation
from headrace.delta.differentiate import stage_change
from headrace.plan.describe import describe
from headrace.relations.definition import define
from headrace.relations.input_reader import InputReader
from headrace.render import inputs_of

TABLE = "CREATE TABLE orders (id int PRIMARY KEY, customer text, amount numeric(12, 2))"
ROWS = "INSERT INTO orders VALUES (1, 'ada', 10), (2, 'ada', 5), (3, 'bob', 7)"
QUERY = "SELECT customer, count(*) AS orders, sum(amount) AS total FROM orders GROUP BY customer"
UPDATE = "UPDATE orders SET amount = 6 WHERE id = 2"
SERVED = "SELECT * FROM revenue ORDER BY customer"
EPOCHS = "SELECT epoch, database FROM headrace.epochs ORDER BY epoch"
PINS = "SELECT id, (pin).version, (pin).epoch FROM headrace.relations ORDER BY id"
STATUS = "SELECT name, status, epoch, last_refresh_mode FROM headrace.status"


def follow(hr: headrace.Headrace, sql: psycopg.Connection[Any]) -> dict[str, str]:
    """Make the tables, change one row, refresh, and give every block of tour.md by its name."""
    engine = hr._engine  # noqa: SLF001  the tour looks behind the public API
    blocks: dict[str, str] = {}
    sql.execute(TABLE)
    sql.execute(ROWS)
    hr.create_stream_table("revenue", QUERY)
    blocks["tables"] = fenced(f"{TABLE};\n{ROWS};", "sql") + "\n\n" + fenced(QUERY, "sql")
    blocks["served before"] = _answer(sql, SERVED)
    blocks["epochs before"] = _answer(sql, EPOCHS)

    sql.execute(UPDATE)
    blocks["update"] = fenced(f"{UPDATE};", "sql")
    buffer = f"headrace_capture.buffer_{_value(sql, 'SELECT $$orders$$::regclass::oid')}"
    shown = "SELECT _weight, c1, c2, c3 FROM {} ORDER BY _seq"
    named = shown.format("headrace_capture.buffer_<oid of orders>")
    blocks["buffer"] = _answer(sql, shown.format(buffer), named)

    refresh = hr.refresh("revenue")
    state = engine.catalog.state()
    (source,), (table,) = state.sources, state.stream_tables
    readable = {source.relation: "orders", table.relation: "revenue"}
    blocks["epochs after"] = _answer(sql, EPOCHS)
    left = f"SELECT count(*) FROM {buffer}"
    blocks["buffer after"] = _answer(sql, left, shown="SELECT count(*) FROM <the buffer>")
    blocks["source log"] = fenced(_log(hr, source.relation))

    definition = define(table, state)
    (stage,) = definition.stages
    change = stage_change(stage, frozenset(table.inputs))
    blocks["plan"] = fenced(describe(definition.plan, readable))
    blocks["delta"] = fenced(describe(change, readable))
    before = dict.fromkeys((*table.inputs, table.relation), refresh.epoch - 1)
    reading = InputReader(engine.store, state, before, limit=1000)
    (wanted,) = (one for one in inputs_of(change) if one.version == "change")
    netted = reading.input(wanted).rows
    assert netted is not None
    blocks["change"] = fenced(_arrow(netted))
    blocks["sql"] = fenced(_renamed(hr.explain("revenue").stages[0].sql, readable), "sql")

    blocks["stage log"] = fenced(_log(hr, table.relation))
    version = state.relation(table.relation).pin.version
    blocks["commit"] = fenced(_commit(hr, table.relation, version), "json")
    blocks["pins"] = _pins(state, readable)
    blocks["visible change"] = fenced(_arrow(reading.change(state.relation(table.relation))))
    blocks["served after"] = _answer(sql, SERVED)
    blocks["status"] = _answer(sql, STATUS)
    recorded = (refresh.mode, refresh.reason, refresh.rows_inserted, refresh.rows_deleted)
    headings = ("mode", "reason", "rows_inserted", "rows_deleted")
    blocks["history"] = fenced(text_table(headings, [tuple(map(str, recorded))]))
    return blocks


def _value(sql: psycopg.Connection[Any], query: str) -> Any:
    row = sql.execute(query).fetchone()
    assert row is not None
    return row[0]


def _answer(sql: psycopg.Connection[Any], query: str, shown: str | None = None) -> str:
    """The query and its rows."""
    cursor = sql.execute(query)
    assert cursor.description is not None
    headings = [column.name for column in cursor.description]
    return fenced(f"{shown or query};\n\n{_text(headings, cursor.fetchall())}")


def _text(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    return text_table(headings, [tuple(map(str, row)) for row in rows])


def _arrow(table: pa.Table) -> str:
    rows = sorted(zip(*(column.to_pylist() for column in table.columns), strict=True), key=str)
    return _text(table.column_names, rows)


def _log(hr: headrace.Headrace, relation: str) -> str:
    """A relation's log as any reader of Delta Lake sees it."""
    stored = pa.table(DeltaTable(_folder(hr, relation)).to_pyarrow_table())
    keys = [(name, "ascending") for name in stored.column_names]
    return _text(stored.column_names, zip(*stored.sort_by(keys).to_pydict().values(), strict=True))


def _commit(hr: headrace.Headrace, relation: str, version: int) -> str:
    """What a Delta commit adds, without names and times."""
    path = Path(_folder(hr, relation), "_delta_log", f"{version:020d}.json")
    actions = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    (added,) = (action["add"] for action in actions if "add" in action)
    shown = {"dataChange": added["dataChange"], "stats": json.loads(added["stats"])}
    return json.dumps({"add": {"path": "rows-2-….parquet", **shown}}, ensure_ascii=False, indent=2)


def _folder(hr: headrace.Headrace, relation: str) -> str:
    return str(hr.home / "store" / relation)


def _pins(state: State, readable: dict[str, str]) -> str:
    def line(relation: Relation) -> tuple[Any, ...]:
        return readable[relation.id], relation.pin.version, relation.pin.epoch

    rows = sorted(map(line, state.relations))
    return fenced(f"{PINS};\n\n{_text(('id', 'version', 'epoch'), rows)}")


def _renamed(text: str, readable: dict[str, str]) -> str:
    for relation, name in readable.items():
        text = text.replace(relation, name)
    return text
