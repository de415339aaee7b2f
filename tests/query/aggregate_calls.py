"""A table of many types, random rows of it, and calls of every aggregate."""

from __future__ import annotations

import random
from collections import Counter
from datetime import date
from decimal import Decimal

from headrace.algebra.scalar import Value
from headrace.functions.intervals import INTERVAL
from headrace.plan.evaluate import Bag
from headrace.query import BoundColumn, BoundTable
from headrace.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, TEXT, Type, numeric, result_numeric

COLUMNS: tuple[tuple[str, Type], ...] = (
    ("g", INTEGER),
    ("h", Type("smallint")),
    ("i", INTEGER),
    ("b", BIGINT),
    ("n", numeric(10, 2)),
    ("w", result_numeric(38, 18)),
    ("f", DOUBLE),
    ("r", Type("real")),
    ("t", TEXT),
    ("o", BOOLEAN),
    ("d", Type("date")),
    ("y", INTERVAL),
    ("z", Type("bytea")),
    ("c", Type("time")),
)
VALUES: dict[str, tuple[Value, ...]] = {
    "g": (1, 2, 3, None),
    "h": (0, 1, -2, 32767, None),
    "i": (0, 1, 3, -7, 2**31 - 1, None),
    "b": (0, 5, -6, 10**9, 2**53 + 1, None),
    "n": (Decimal("0.10"), Decimal("2.25"), Decimal("-3.00"), Decimal("99999999.99"), None),
    "w": (Decimal("0.5"), Decimal("1E-9"), Decimal("-12345.678"), Decimal(7), None),
    "f": (0.0, -0.0, 0.25, 1.5, -2.0, None),
    "r": (0.5, 1.25, -3.0, None),
    "t": ("a", "B", "", "ab", "é", None),
    "o": (True, False, None),
    "d": (date(2024, 2, 29), date(2023, 1, 1), date(1, 1, 1), None),
    "y": ("P1M", "P1Y2M-3DT4H5M6.789S", "PT-0.000001S", "P17D", "P-1M-1DT-1S", None),
    "z": (b"", b"\x00", b"\x7f\xff", b"\xff", None),
    "c": ("00:00:00", "12:30:00", "12:30:00.5", None),
}
Row = tuple[Value, ...]


class Table:
    """The one table of these tests."""

    bound = BoundTable(
        "t",
        "public",
        "t",
        tuple(BoundColumn(name, f"c{i}", c, c.sql) for i, (name, c) in enumerate(COLUMNS, 1)),
        (),
    )

    def resolve(self, schema: str | None, name: str) -> BoundTable | None:
        return self.bound if name == "t" else None


NUMBERS = ("h", "i", "n", "w", "f", "r")
DEVIATIONS = ("var_pop", "var_samp", "variance", "stddev_pop", "stddev_samp", "stddev")
REGRESSIONS = ("avgx", "avgy", "count", "intercept", "r2", "slope", "sxx", "sxy", "syy")
PAIRS = ("covar_pop", "covar_samp", "corr", *(f"regr_{name}" for name in REGRESSIONS))
CALLS: tuple[tuple[str, ...], ...] = (
    tuple(f"{f}({c})" for f in ("count", "sum", "avg", "min", "max") for c in (*NUMBERS, "b")),
    tuple(f"{f}({c})" for f in DEVIATIONS for c in NUMBERS),
    tuple(f"{f}(b % 1000)" for f in DEVIATIONS),
    tuple(f"{f}(f, r)" for f in PAIRS) + tuple(f"{f}(i, n)" for f in ("corr", "regr_slope")),
    tuple(f"{f}({c})" for f in ("bit_and", "bit_or", "bit_xor") for c in ("h", "i", "b")),
    tuple(f"{f}(o)" for f in ("bool_and", "bool_or", "every")),
    ("sum(y)", "avg(y)", "sum(y) FILTER (WHERE o)", "min(z)", "max(z)", "min(c)", "max(c)"),
    ("min(t)", "max(t)", "min(d)", "max(d)", "count(*)", "count(t)", "min(b) + max(b) - sum(b)"),
    (
        "string_agg(t, ',' ORDER BY t)",
        "string_agg(t, ', ' ORDER BY i DESC, b, t)",
        "string_agg(t, t ORDER BY d NULLS FIRST, t DESC)",
        "string_agg(t, NULL ORDER BY t)",
        "string_agg(t, ';' ORDER BY t) FILTER (WHERE i > 0)",
    ),
    (
        "array_agg(i ORDER BY i)",
        "array_agg(t ORDER BY i DESC NULLS LAST, b, t)",
        "array_agg(n ORDER BY n DESC) FILTER (WHERE o)",
        "array_agg(f ORDER BY f NULLS FIRST)",
        "array_agg(d ORDER BY d)",
        "array_agg(z ORDER BY z)",
        "array_agg(o ORDER BY i, o)",
        "array_agg(c ORDER BY c)",
        "array_agg(DISTINCT i ORDER BY i DESC)",
        "array_agg(DISTINCT t ORDER BY t) FILTER (WHERE i > 0)",
        "(array_agg(t ORDER BY t))[1]",
        "cardinality(array_agg(w ORDER BY w))",
        "array_to_string(array_agg(h ORDER BY h), '+')",
    ),
    tuple(
        f"percentile_{kind}({p}) WITHIN GROUP (ORDER BY {c} {way})"
        for kind in ("cont", "disc")
        for p in (0, 0.25, 0.5, 1)
        for c, way in (("i", ""), ("n", "DESC"), ("f", "DESC NULLS LAST"))
    ),
    tuple(
        f"{f} WITHIN GROUP (ORDER BY {c})"
        for f in ("mode()", "percentile_disc(0.3)")
        for c in ("i", "t", "t DESC", "d", "n", "w DESC", "o")
    ),
    ("percentile_cont(NULL::float8) WITHIN GROUP (ORDER BY f)",
     "percentile_disc(0.5) WITHIN GROUP (ORDER BY d) FILTER (WHERE o)", "count(*) FILTER (WHERE o)",
     "sum(i) FILTER (WHERE h = 1)",
     "stddev(n) FILTER (WHERE i IS NULL)", "bool_and(i > 0) FILTER (WHERE o)"),
    ("count(DISTINCT i)", "sum(DISTINCT i)", "avg(DISTINCT i)", "min(DISTINCT i)"),
    ("count(DISTINCT t)", "string_agg(DISTINCT t, '-' ORDER BY t DESC)",
     "string_agg(DISTINCT t, ',')"),
    ("count(DISTINCT i)", "count(DISTINCT f)", "sum(DISTINCT n)", "avg(DISTINCT w)", "count(*)",
     "stddev(DISTINCT h)", "bit_xor(DISTINCT i)", "corr(DISTINCT f, r)", "max(DISTINCT t)",
     "string_agg(DISTINCT t, ',' ORDER BY t)", "count(DISTINCT i) FILTER (WHERE o)"),
    ("count(DISTINCT t) FILTER (WHERE o)",),
)  # fmt: skip


def random_rows(source: random.Random, count: int) -> Bag:
    rows: Bag = Counter()
    for _ in range(count):
        row = tuple(source.choice(VALUES[name]) for name, _ in COLUMNS)
        rows[row] += source.choice((1, 1, 2))
    return rows
