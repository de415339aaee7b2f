"""What a refresh changed in a served table, told by a row before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import psycopg
from psycopg.rows import dict_row

from headrace.demo.views import DemoView

Row = Mapping[str, Any]
Rows = Mapping[tuple[Any, ...], Row]


@dataclass(frozen=True)
class ChangedRow:
    """A row that changed: None before means that it is new, None after that it is gone."""

    before: Row | None
    after: Row | None


def read_rows(connection: psycopg.Connection, view: DemoView) -> Rows:
    """The served table as an application reads it, by key."""
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(f"SELECT * FROM {view.table}").fetchall()
    return {tuple(row[name] for name in view.key): row for row in rows}


def changes(before: Rows, after: Rows) -> tuple[ChangedRow, ...]:
    """All rows that differ, in the order of their keys."""
    keys = sorted(before.keys() | after.keys())
    pairs = (ChangedRow(before.get(key), after.get(key)) for key in keys)
    return tuple(pair for pair in pairs if pair.before != pair.after)


def pick(found: Sequence[ChangedRow], number: int) -> ChangedRow | None:
    """One of them; with each number another kind comes first, so that a reader sees them all."""
    kinds = (
        [one for one in found if one.before is not None and one.after is not None],
        [one for one in found if one.before is None],
        [one for one in found if one.after is None],
    )
    for turn in range(3):
        kind = kinds[(number + turn) % 3]
        if kind:
            return kind[number % len(kind)]
    return None


def tell(view: DemoView, sample: ChangedRow) -> str:
    """The sample in a line: Oak tray: revenue 1,204.50 → 1,310.20."""
    row = sample.after or sample.before
    assert row is not None
    label = f"{told(row[view.label])}: "
    if sample.before is None or sample.after is None:
        first = view.watched[0]
        kind = "new" if sample.before is None else "gone"
        return f"{label}{kind}, {first} {told(row[first])}"
    before, after = sample.before, sample.after
    column = next((name for name in view.watched if before[name] != after[name]), view.watched[0])
    old, new = told(before[column]), told(after[column])
    if old == new:
        old, new = str(before[column]), str(after[column])
    return f"{label}{column} {old} → {new}"


def told(value: Any) -> str:
    """A value in few letters: large amounts without their cents."""
    if isinstance(value, Decimal):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.2f}"
    if isinstance(value, int):
        return f"{value:,}"
    return value.isoformat() if isinstance(value, date) else str(value)
