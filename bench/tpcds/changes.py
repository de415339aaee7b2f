"""Batches of inserts, updates and deletes over all 24 tables, with valid keys.

Every batch writes all tables, in one transaction. Sales are copies of others under new numbers,
for other customers on other days; returns refer to sales that had none. A dimension gets copies of
its rows under new keys, to which sales of the same and later batches refer; what an earlier batch
inserted is replaced in all that refers to it, and deleted. What a batch does follows from the
seed and its number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random
from typing import Any

import psycopg

from bench.tpcds.schema import KEYS, SALES_OF, TABLES, columns, key, references

CENT = Decimal("0.01")
DIMENSIONS = tuple(table for table in TABLES if table not in KEYS)
SALES = tuple(SALES_OF.values())
# Columns of dimensions that a batch changes, beside numeric ones; other rows have their new values.
UPDATED = {
    "call_center": ("cc_manager", "cc_county"),
    "catalog_page": ("cp_type",),
    "customer": ("c_current_addr_sk", "c_preferred_cust_flag", "c_birth_month", "c_first_name"),
    "customer_address": ("ca_state", "ca_city", "ca_zip", "ca_gmt_offset", "ca_county"),
    "customer_demographics": ("cd_marital_status", "cd_education_status", "cd_gender"),
    "date_dim": ("d_day_name", "d_dow"),
    "household_demographics": ("hd_dep_count", "hd_vehicle_count", "hd_buy_potential"),
    "income_band": ("ib_upper_bound",),
    "item": ("i_category", "i_class", "i_brand", "i_manufact_id", "i_color", "i_manager_id"),
    "promotion": ("p_channel_email", "p_channel_tv", "p_channel_dmail"),
    "reason": ("r_reason_desc",),
    "ship_mode": ("sm_type", "sm_carrier"),
    "store": ("s_store_name", "s_city", "s_county", "s_number_employees"),
    "time_dim": ("t_hour", "t_minute", "t_meal_time"),
    "warehouse": ("w_warehouse_name", "w_state"),
    "web_page": ("wp_char_count",),
    "web_site": ("web_name", "web_company_name"),
}

Sql = psycopg.Connection[Any]
Row = dict[str, Any]


@dataclass
class Changes:
    """The batches of one run over a loaded database; `rows` are inserted into each sales table.

    With `near_misses` prices change by a cent, and sales are inserted that differ from another
    of the same customer, item and day in one price by a cent, or in nothing.
    """

    rows: int
    seed: int = 1
    near_misses: bool = False
    inserted: dict[str, list[int]] = field(default_factory=dict)

    def apply(self, sql: Sql, number: int) -> dict[str, int]:
        """Write one batch; return the rows written by table."""
        random = Random(f"{self.seed} {number}")  # noqa: S311
        written: dict[str, int] = {}
        with sql.transaction():
            batch = _Batch(sql, random, self, written)
            batch.dimensions()
            batch.sales()
            batch.returns()
            batch.inventory()
        return written


@dataclass
class _Batch:
    sql: Sql
    random: Random
    of: Changes
    written: dict[str, int]
    keys: dict[str, list[int]] = field(default_factory=dict)
    known: dict[str, set[int]] = field(default_factory=dict)

    def dimensions(self) -> None:
        replaced = dict(self.of.inserted)
        for table in DIMENSIONS:
            few = max(1, min(self.of.rows // 10, self._count(table) // 10))
            (name,) = key(table)
            top = self._one(f"SELECT max({name}) FROM {table}")
            new = [
                {**row, name: top + 1 + i, **self._moved(table, row)}
                for i, row in enumerate(self._some(table, few))
            ]
            self._insert(table, new)
            self.of.inserted[table] = [row[name] for row in new]
            self._update(table, few)
        self.keys = {table: self._keys(table) for table in DIMENSIONS}
        for table, old in replaced.items():
            self._replace(table, old)
        for table in DIMENSIONS:
            self.keys[table] = self._keys(table)
            self.known[table] = set(self.keys[table])

    def sales(self) -> None:
        for table in SALES:
            item, number = key(table)
            top = self._one(f"SELECT max({number}) FROM {table}")
            new: dict[tuple[int, int], Row] = {}
            for i, row in enumerate(self._some(table, self.of.rows)):
                copy = {**row, number: top + 1 + i // 4}
                if not (self.of.near_misses and i % 2):
                    copy |= self._moved(table, row, self.random.random() < 0.5)
                self._reprice(copy, table)
                new[copy[item], copy[number]] = copy
            self._insert(table, list(new.values()))
            self._update(table, self.of.rows)
            gone = [tuple(row[c] for c in key(table)) for row in self._some(table, self.of.rows)]
            returns = next(name for name, of in SALES_OF.items() if of == table)
            self._delete(returns, gone)
            self._delete(table, gone)

    def returns(self) -> None:
        for table, sold in SALES_OF.items():
            few = max(1, self.of.rows // 4)
            own, theirs = key(table), key(sold)
            same = " AND ".join(f"r.{a} = s.{b}" for a, b in zip(own, theirs, strict=True))
            open_sales = self._rows(
                f"SELECT * FROM {sold} s WHERE NOT EXISTS (SELECT FROM {table} r WHERE {same})"
                f" ORDER BY {self._shuffled(theirs)} LIMIT {few}"
            )
            patterns = self._some(table, few)
            new = []
            for row, sale in zip(patterns, open_sales, strict=False):
                copy = {**row, **dict(zip(own, (sale[c] for c in theirs), strict=True))}
                copy |= _of_sale(table, sale)
                self._reprice(copy, table)
                new.append(copy)
            self._insert(table, new)
            self._update(table, few)
            gone = [tuple(row[c] for c in own) for row in self._some(table, few)]
            self._delete(table, gone)

    def inventory(self) -> None:
        names, few = key("inventory"), self.of.rows
        dates = [row["inv_date_sk"] for row in self._some("inventory", few)]
        taken = set(self.sql.execute(f"SELECT {', '.join(names)} FROM inventory".encode()))
        new = {}
        for date in dates:
            place = (
                self._drawn("date_dim", date),
                self.random.choice(self.keys["item"]),
                self.random.choice(self.keys["warehouse"]),
            )
            if place not in taken:
                new[place] = self.random.choice((None, self.random.randint(0, 1000)))
        rows = [
            dict(zip(names, p, strict=True)) | {"inv_quantity_on_hand": q} for p, q in new.items()
        ]
        self._insert("inventory", rows)
        self._update("inventory", few)
        gone = [tuple(row[c] for c in names) for row in self._some("inventory", few)]
        self._delete("inventory", gone)

    def _moved(self, table: str, row: Row, much: bool = False) -> Row:
        """Return other values for some columns that refer to dimensions."""
        moved: Row = {}
        for column, dimension in references(table).items():
            known = self.keys.get(dimension)
            if known and row[column] is not None and self.random.random() < (0.6 if much else 0.2):
                moved[column] = self._drawn(dimension, row[column])
        return moved

    def _drawn(self, dimension: str, now: int) -> int:
        """Return a key of a dimension: a new one, or any; of days and times one that is near."""
        new = self.of.inserted.get(dimension, [])
        if new and self.random.random() < 0.2:
            return self.random.choice(new)
        if dimension in {"date_dim", "time_dim"}:
            near = now + self.random.randint(-30, 30)
            return near if near in self.known[dimension] else now
        return self.random.choice(self.keys[dimension])

    def _reprice(self, row: Row, table: str) -> None:
        for column, type_ in columns(table).items():
            if type_ == "numeric(7,2)" and row[column] is not None and self.random.random() < 0.3:
                row[column] = self._price(row[column])
            elif column.endswith("quantity") and self.random.random() < 0.3:
                row[column] = self.random.randint(1, 100)

    def _price(self, value: Decimal) -> Decimal:
        if self.of.near_misses:
            return min(value + self.random.choice((-CENT, CENT)), Decimal("99999.99"))
        return (value * Decimal(self.random.randint(80, 120)) / 100).quantize(CENT)

    def _update(self, table: str, count: int) -> None:
        """Change some columns of some rows; a value of a dimension becomes that of another row."""
        own = key(table)
        others = self._some(table, count) if table in UPDATED else []
        for i, row in enumerate(self._some(table, count)):
            new = dict(row)
            self._reprice(new, table)
            if table in UPDATED:
                for column in self.random.sample(UPDATED[table], 1 + i % 2 % len(UPDATED[table])):
                    new[column] = self.random.choice(others)[column]
            elif table != "inventory":
                new |= self._moved(table, row) if table not in SALES_OF else {}
                new |= {c: row[c] for c in own}
            else:
                new["inv_quantity_on_hand"] = self.random.randint(0, 1000)
            changed = {c: v for c, v in new.items() if v != row[c]}
            if changed:
                self._set(table, changed, {c: row[c] for c in own})

    def _set(self, table: str, values: Row, where: Row) -> None:
        sets = ", ".join(f"{c} = %s" for c in values)
        match = " AND ".join(f"{c} = %s" for c in where)
        text = f"UPDATE {table} SET {sets} WHERE {match}"
        self._write(table, text, [*values.values(), *where.values()])

    def _replace(self, table: str, old: list[int]) -> None:
        """Have everything refer to other keys, and delete these."""
        (name,) = key(table)
        kept = self.random.choice([k for k in self.keys[table] if k not in old])
        for other in TABLES:
            for column, dimension in references(other).items():
                if dimension == table and column not in key(other):
                    self._write(
                        other,
                        f"UPDATE {other} SET {column} = %s WHERE {column} = ANY(%s)",
                        [kept, old],
                    )
                elif dimension == table:
                    # A key cannot be exchanged: what has it goes, returns before their sales.
                    self._drop_referring(other, column, old)
        self._write(table, f"DELETE FROM {table} WHERE {name} = ANY(%s)", [old])

    def _drop_referring(self, table: str, column: str, old: list[int]) -> None:
        gone = self._rows(f"SELECT * FROM {table} WHERE {column} = ANY(%s)", [old])
        keys = [tuple(row[c] for c in key(table)) for row in gone]
        for returns, sold in SALES_OF.items():
            if sold == table:
                self._delete(returns, keys)
        self._delete(table, keys)

    def _insert(self, table: str, rows: Sequence[Row]) -> None:
        if rows:
            names = list(columns(table))
            values = ", ".join(["%s"] * len(names))
            text = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({values})"
            with self.sql.cursor() as cursor:
                cursor.executemany(text.encode(), [[row[c] for c in names] for row in rows])
            self.written[table] = self.written.get(table, 0) + len(rows)

    def _delete(self, table: str, keys: Sequence[tuple[Any, ...]]) -> None:
        match = " AND ".join(f"{c} = %s" for c in key(table))
        for place in keys:
            self._write(table, f"DELETE FROM {table} WHERE {match}", list(place))

    def _write(self, table: str, text: str, values: Sequence[Any]) -> None:
        count = self.sql.execute(text.encode(), values).rowcount
        self.written[table] = self.written.get(table, 0) + count

    def _some(self, table: str, count: int) -> list[Row]:
        """Return some rows of a table, others each time."""
        return self._rows(
            f"SELECT * FROM {table} ORDER BY {self._shuffled(key(table))} LIMIT {count}"
        )

    def _shuffled(self, names: Sequence[str]) -> str:
        text = " || ' ' || ".join(names)
        return f"md5({text} || ' {self.random.random()}')"

    def _rows(self, text: str, values: Sequence[Any] = ()) -> list[Row]:
        with self.sql.cursor(row_factory=psycopg.rows.dict_row) as cursor:
            return cursor.execute(text.encode(), values or None).fetchall()

    def _one(self, text: str) -> int:
        row = self.sql.execute(text.encode()).fetchone()
        assert row is not None
        return int(row[0])

    def _count(self, table: str) -> int:
        return self._one(f"SELECT count(*) FROM {table}")

    def _keys(self, table: str) -> list[int]:
        (name,) = key(table)
        rows = self.sql.execute(f"SELECT {name} FROM {table} ORDER BY {name}".encode())
        return [row[0] for row in rows]


def _of_sale(table: str, sale: Row) -> Row:
    """Return what a return has of its sale beside the key."""
    match table:
        case "store_returns":
            return {"sr_customer_sk": sale["ss_customer_sk"], "sr_store_sk": sale["ss_store_sk"]}
        case "catalog_returns":
            return {
                "cr_refunded_customer_sk": sale["cs_bill_customer_sk"],
                "cr_returning_customer_sk": sale["cs_ship_customer_sk"],
                "cr_call_center_sk": sale["cs_call_center_sk"],
                "cr_catalog_page_sk": sale["cs_catalog_page_sk"],
            }
    return {
        "wr_refunded_customer_sk": sale["ws_bill_customer_sk"],
        "wr_returning_customer_sk": sale["ws_ship_customer_sk"],
        "wr_web_page_sk": sale["ws_web_page_sk"],
    }
