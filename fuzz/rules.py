"""What expressions can be made of: a template, the kinds of its parts, the kind of the result."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    kind: str
    text: str
    parts: tuple[str, ...]
    item: str
    weight: float = 1.0


def _comparisons() -> tuple[Rule, ...]:
    """All kinds can be compared with themselves, and numbers with each other."""
    kinds = ("int", "int", "bigint", "numeric", "float", "text", "char", "date", "timestamp")
    found = [
        Rule("bool", f"({{}} {sign} {{}})", (kind, kind), "comparison", 0.4)
        for kind in kinds
        for sign in ("=", "<>", "<", "<=", ">", ">=")
    ]
    mixed = (("int", "bigint"), ("int", "numeric"), ("bigint", "numeric"), ("int", "float"))
    found += [Rule("bool", "({} < {})", pair, "comparison", 0.4) for pair in mixed]
    for pair in (("exact", "exact"), ("exact", "numeric"), ("exact", "int"), ("exact", "bigint")):
        found += [
            Rule("bool", f"({{}} {sign} {{}})", pair, "mixed numbers", 0.6)
            for sign in ("=", "<>", "<", "<=", ">", ">=")
        ]
    found += [
        Rule("bool", "({} IN ({}, {}, 1.005))", ("exact",) * 3, "mixed numbers"),
        Rule("bool", "({} NOT IN ({}, {}))", ("exact", "exact", "numeric"), "mixed numbers"),
        Rule("bool", "({} BETWEEN {} AND {})", ("exact",) * 3, "mixed numbers"),
        Rule("bool", "({} IS DISTINCT FROM {})", ("exact", "exact"), "mixed numbers"),
        Rule("bool", "({} IS NULL)", ("exact",), "is null", 0.3),
        Rule("bool", "({} <= (0.5 * {}))", ("exact", "exact"), "mixed numbers"),
    ]
    for kind in (*kinds, "bool"):
        found += [
            Rule("bool", "({} IS NULL)", (kind,), "is null", 0.3),
            Rule("bool", "({} IS NOT NULL)", (kind,), "is null", 0.3),
            Rule("bool", "({} IS DISTINCT FROM {})", (kind, kind), "comparison", 0.2),
            Rule("bool", "({} IS NOT DISTINCT FROM {})", (kind, kind), "comparison", 0.1),
        ]
    for kind in ("int", "numeric", "text", "date"):
        found += [
            Rule("bool", "({} BETWEEN {} AND {})", (kind,) * 3, "between", 0.5),
            Rule("bool", "({} NOT BETWEEN {} AND {})", (kind,) * 3, "between", 0.3),
        ]
    return tuple(found)


def _choices() -> tuple[Rule, ...]:
    """CASE, COALESCE and NULLIF of every kind."""
    found = []
    for kind in (
        "int", "bigint", "numeric", "exact", "float", "text", "char", "bool", "date", "timestamp",
    ):  # fmt: skip
        found += [
            Rule(kind, "CASE WHEN {} THEN {} ELSE {} END", ("bool", kind, kind), "case"),
            Rule(
                kind,
                "CASE WHEN {} THEN {} END",
                ("bool", kind),
                "case",
                0.1 if kind == "char" else 0.5,
            ),
            Rule(
                kind,
                "CASE {} WHEN 1 THEN {} WHEN 2 THEN {} END",
                ("int", kind, kind),
                "case",
                0.1 if kind == "char" else 1,
            ),
            Rule(kind, "coalesce({}, {})", (kind, kind), "coalesce"),
            Rule(kind, "nullif({}, {})", (kind, kind), "coalesce", 0.5),
        ]
        if kind not in ("char", "bool", "float"):
            found.append(Rule(kind, "greatest({}, {})", (kind, kind), "coalesce", 0.3))
            found.append(Rule(kind, "least({}, {})", (kind, kind), "coalesce", 0.3))
    return tuple(found)


RULES: tuple[Rule, ...] = (
    Rule("int", "({} + {})", ("int", "int"), "arithmetic"),
    Rule("int", "({} - {})", ("int", "int"), "arithmetic"),
    Rule("int", "({} * 2)", ("int",), "arithmetic"),
    Rule("int", "({} / 2)", ("int",), "arithmetic"),
    Rule("int", "({} / -3)", ("int",), "arithmetic"),
    Rule("int", "({} % 3)", ("int",), "arithmetic"),
    Rule("int", "({} / nullif({}, 0))", ("int", "int"), "arithmetic"),
    Rule("int", "CASE WHEN {0} <> 0 THEN 12 / {0} END", ("int",), "case"),
    Rule("int", "(- {})", ("int",), "arithmetic"),
    Rule("int", "abs({})", ("int",), "arithmetic"),
    Rule("int", "length({})", ("text",), "string"),
    Rule("int", "{}::int", ("bool",), "cast"),
    Rule("int", "({} - {})", ("date", "date"), "date and time"),
    Rule("int", "extract(month FROM {})::int", ("date",), "date and time"),
    Rule("int", "extract(year FROM {})::int", ("timestamp",), "date and time", 0.5),
    Rule("bigint", "({} + {})", ("bigint", "int"), "arithmetic"),
    Rule("bigint", "({} - {})", ("bigint", "bigint"), "arithmetic"),
    Rule("bigint", "{}::bigint", ("int",), "cast"),
    Rule("bigint", "({} % 4)", ("bigint",), "arithmetic"),
    Rule("numeric", "({} + {})", ("numeric", "int"), "arithmetic"),
    Rule("numeric", "({} - {})", ("numeric", "numeric"), "arithmetic"),
    Rule("numeric", "({} * 2)", ("numeric",), "arithmetic"),
    Rule("numeric", "({} * (1 - 0.05))", ("numeric",), "arithmetic"),
    Rule("numeric", "{}::numeric(14,4)", ("int",), "cast"),
    Rule("numeric", "{}::numeric", ("bigint",), "cast"),
    Rule("numeric", "round({}, 1)", ("numeric",), "arithmetic"),
    Rule("numeric", "extract(day FROM {})", ("date",), "date and time", 0.5),
    Rule("exact", "coalesce({}, {}, {})", ("exact", "numeric", "int"), "mixed numbers"),
    Rule("exact", "greatest({}, {}, {})", ("exact", "numeric", "exact"), "mixed numbers"),
    Rule(
        "exact", "CASE WHEN {} THEN {} ELSE {} END", ("bool", "exact", "numeric"), "mixed numbers"
    ),
    Rule("exact", "({} + 1)", ("exact",), "arithmetic"),
    Rule("exact", "({} - {})", ("exact", "exact"), "mixed numbers", 0.4),
    Rule("exact", "round({}, 2)", ("exact",), "arithmetic"),
    Rule("exact", "({})::numeric(20,4)", ("exact",), "cast"),
    Rule("quotient", "({} / 3)", ("numeric",), "arithmetic"),
    Rule("quotient", "({} / nullif({}, 0))", ("numeric", "int"), "arithmetic"),
    Rule("quotient", "coalesce({}, 0)", ("quotient",), "coalesce"),
    Rule("float", "({} + {})", ("float", "float"), "arithmetic"),
    Rule("float", "({} * 0.5)", ("float",), "arithmetic"),
    Rule("float", "{}::float8", ("int",), "cast"),
    Rule("float", "abs({})", ("float",), "arithmetic"),
    Rule("rough", "({} / 3)", ("float",), "arithmetic"),
    Rule("text", "({} || {})", ("text", "text"), "string"),
    Rule("text", "(({} || '-') COLLATE \"C\")", ("char",), "string"),
    Rule("text", "upper({})", ("text",), "string"),
    Rule("text", "lower({})", ("text",), "string"),
    Rule("text", "substring({} FROM 1 FOR 1)", ("text",), "string"),
    Rule("text", "replace({}, 'a', 'x')", ("text",), "string"),
    Rule("text", "trim({})", ("text",), "string", 0.5),
    Rule("text", '({}::text COLLATE "C")', ("int",), "cast"),
    Rule("text", '(({})::text COLLATE "C")', ("date",), "cast", 0.5),
    Rule("text", "({})::varchar(1)", ("text",), "cast", 0.5),
    Rule("text", "(({} ->> 'b') COLLATE \"C\")", ("json",), "json function"),
    Rule("char", '(({})::char(3) COLLATE "C")', ("text",), "cast"),
    Rule("date", "({} + {})", ("date", "int"), "date and time"),
    Rule("date", "({} - 30)", ("date",), "date and time"),
    Rule("date", "{}::date", ("timestamp",), "cast"),
    Rule("timestamp", "{}::timestamp", ("date",), "cast"),
    Rule("timestamp", "date_trunc('day', {})", ("timestamp",), "date and time"),
    Rule("timestamp", "({} + INTERVAL '1 day')", ("timestamp",), "date and time"),
    Rule("bool", "({} AND {})", ("bool", "bool"), "and or not", 3),
    Rule("bool", "({} OR {})", ("bool", "bool"), "and or not", 8),
    Rule("bool", "(NOT {})", ("bool",), "and or not", 2),
    Rule("bool", "({} IS NOT TRUE)", ("bool",), "is null"),
    Rule("bool", "({} IN (1, 2, NULL))", ("int",), "in list"),
    Rule("bool", "({} NOT IN (1, 2))", ("int",), "in list"),
    Rule("bool", "({} IN ('a', 'b'))", ("text",), "in list"),
    Rule("bool", "({} LIKE 'a%')", ("text",), "like"),
    Rule("bool", "({} NOT LIKE '%b')", ("text",), "like"),
    Rule("bool", "({} ILIKE 'B%')", ("text",), "like", 0.5),
    *_comparisons(),
    *_choices(),
)

AGGREGATES: tuple[Rule, ...] = (
    Rule("bigint", "count(*)", (), "count"),
    *(Rule("bigint", "count({})", (kind,), "count", 0.3) for kind in ("int", "text", "bool")),
    Rule("bigint", "sum({})", ("int",), "sum"),
    Rule("numeric", "sum({})", ("bigint",), "sum"),
    Rule("numeric", "sum({})", ("numeric",), "sum"),
    Rule("exact", "sum({})", ("exact",), "sum"),
    Rule("exact", "min({})", ("exact",), "min max", 0.4),
    Rule("exact", "max({})", ("exact",), "min max", 0.4),
    Rule("bigint", "count(DISTINCT {})", ("exact",), "distinct aggregate", 0.5),
    Rule("float", "sum({})", ("float",), "sum"),
    Rule("quotient", "avg({})", ("int",), "avg"),
    Rule("quotient", "avg({})", ("numeric",), "avg"),
    Rule("rough", "avg({})", ("float",), "avg"),
    *(
        Rule(kind, f"{name}({{}})", (kind,), "min max", 0.4)
        for kind in ("int", "bigint", "numeric", "float", "text", "date", "timestamp")
        for name in ("min", "max")
    ),
    *(
        Rule("quotient", f"{name}({{}})", (kind,), "variance", 0.5)
        for name in ("var_pop", "var_samp", "stddev_pop", "stddev_samp", "stddev", "variance")
        for kind in ("int", "numeric")
    ),
    Rule("rough", "stddev({})", ("float",), "variance"),
    *(
        Rule("rough", f"{name}({{}}, {{}})", ("float", "float"), "regression", 0.3)
        for name in ("corr", "covar_pop", "covar_samp", "regr_slope", "regr_avgx")
    ),
    Rule("bigint", "regr_count({}, {})", ("float", "float"), "regression", 0.3),
    Rule("bool", "bool_and({})", ("bool",), "bool_and bool_or"),
    Rule("bool", "bool_or({})", ("bool",), "bool_and bool_or"),
    Rule("bool", "every({})", ("bool",), "bool_and bool_or", 0.5),
    Rule("text", "string_agg({0}, ',' ORDER BY {0})", ("text",), "string_agg"),
    Rule("text", "string_agg({0}, '' ORDER BY {1} DESC, {0})", ("text", "int"), "string_agg"),
    Rule("ints", "array_agg({0} ORDER BY {0} DESC NULLS LAST)", ("int",), "array_agg"),
    Rule("texts", "array_agg({0} ORDER BY {1}, {0})", ("text", "int"), "array_agg"),
    Rule("float", "percentile_cont(0.5) WITHIN GROUP (ORDER BY {})", ("int",), "percentile"),
    Rule("float", "percentile_cont(0.25) WITHIN GROUP (ORDER BY {})", ("float",), "percentile"),
    Rule("int", "percentile_disc(0.5) WITHIN GROUP (ORDER BY {})", ("int",), "percentile"),
    Rule("int", "mode() WITHIN GROUP (ORDER BY {})", ("int",), "mode"),
    Rule("text", "mode() WITHIN GROUP (ORDER BY {})", ("text",), "mode"),
    *(
        Rule("bigint", "count(DISTINCT {})", (kind,), "distinct aggregate", 0.5)
        for kind in ("int", "text")
    ),
    Rule("bigint", "sum(DISTINCT {})", ("int",), "distinct aggregate", 0.5),
    Rule("quotient", "avg(DISTINCT {})", ("int",), "distinct aggregate", 0.3),
    Rule(
        "text", "string_agg(DISTINCT {0}, ',' ORDER BY {0})", ("text",), "distinct aggregate", 0.3
    ),
    Rule("quotient", "100.0 * sum({}) / nullif(sum({}), 0)", ("int", "int"),
         "aggregate expression"),
    Rule("bigint", "coalesce(sum({}), 0) + 7", ("int",), "aggregate expression"),
    Rule("bigint", "sum(CASE WHEN {} THEN 1 ELSE 0 END)", ("bool",), "case in aggregate"),
    Rule("bigint", "sum(CASE WHEN {} THEN {} ELSE 0 END)", ("bool", "int"), "case in aggregate"),
    Rule("numeric", "sum(CASE WHEN {} THEN {} END)", ("bool", "numeric"), "case in aggregate"),
    Rule("bigint", "count(CASE WHEN {} THEN {} END)", ("bool", "text"), "case in aggregate"),
    Rule("int", "max(CASE {} WHEN 1 THEN {} WHEN 2 THEN {} END)", ("int", "int", "int"),
         "case in aggregate"),
    Rule("quotient", "avg(CASE WHEN {} THEN {} ELSE NULL END)", ("bool", "int"),
         "case in aggregate"),
    Rule("bigint", "sum(CASE WHEN {0} THEN {1} ELSE 0 END) - sum(CASE WHEN {0} THEN 0 ELSE {1}"
         " END)", ("bool", "int"), "case in aggregate"),
    Rule("bigint", "sum({}) FILTER (WHERE {}) - count(*) FILTER (WHERE {})",
         ("int", "bool", "bool"), "aggregate expression"),
    Rule("quotient", "sum({}) FILTER (WHERE {}) * 100.0 / nullif(count(*), 0)", ("int", "bool"),
         "aggregate expression"),
    Rule("numeric", "sum({0} * {1}) - sum({0}) * 2", ("numeric", "int"), "aggregate expression"),
    Rule("bool", "(sum({}) <= 0.1 * sum({}))", ("int", "exact"), "mixed numbers"),
    Rule("bool", "(sum({}) < 0.5 * sum({}) + 0.4)", ("exact", "exact"), "mixed numbers"),
    Rule("bool", "(min({}) = max({}))", ("exact", "exact"), "mixed numbers", 0.5),
    Rule("bigint", "max({}) - min({}) + count(*)", ("int", "int"), "aggregate expression", 0.5),
)  # fmt: skip

# Window functions by whether peers may be told apart: {w} is the window, {p} its partition alone.
RANKINGS: tuple[Rule, ...] = (
    Rule("bigint", "rank()", (), "ranking window"),
    Rule("bigint", "dense_rank()", (), "ranking window"),
    Rule("rough", "percent_rank()", (), "ranking window", 0.5),
    Rule("rough", "cume_dist()", (), "ranking window", 0.5),
)
POSITIONS: tuple[Rule, ...] = (
    Rule("bigint", "row_number()", (), "ranking window"),
    Rule("int", "ntile(3)", (), "ranking window"),
    Rule("int", "lag({})", ("int",), "offset window"),
    Rule("text", "lag({}, 2, 'z')", ("text",), "offset window"),
    Rule("int", "lead({}, 1)", ("int",), "offset window"),
    Rule("date", "lead({})", ("date",), "offset window"),
)
FRAMED: tuple[Rule, ...] = (
    Rule("bigint", "sum({})", ("int",), "aggregate window"),
    Rule("bigint", "count({})", ("int",), "aggregate window"),
    Rule("bigint", "count(*)", (), "aggregate window"),
    Rule("int", "min({})", ("int",), "aggregate window"),
    Rule("text", "max({})", ("text",), "aggregate window"),
    Rule("float", "sum({})", ("float",), "aggregate window"),
    Rule("quotient", "avg({})", ("int",), "aggregate window"),
)
# These ask for a certain row of the frame.
FRAMED_POSITIONS: tuple[Rule, ...] = (
    Rule("int", "first_value({})", ("int",), "offset window"),
    Rule("text", "last_value({})", ("text",), "offset window"),
    Rule("int", "nth_value({}, 2)", ("int",), "offset window"),
)
FRAMES: tuple[tuple[str, str | None], ...] = (
    ("", None),
    (" ROWS UNBOUNDED PRECEDING", "rows frame"),
    (" ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING", "rows frame"),
    (" ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING", "rows frame"),
    (" ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING", "rows frame"),
    (" ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING EXCLUDE CURRENT ROW", "frame exclusion"),
    (" RANGE UNBOUNDED PRECEDING", "range frame"),
    (" RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", "range frame"),
    (" RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING", "range frame"),
    (" GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW", "groups frame"),
    (" GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING", "groups frame"),
    (" RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE TIES", "frame exclusion"),
    (" GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE GROUP", "frame exclusion"),
)
