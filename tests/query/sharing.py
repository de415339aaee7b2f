"""Random queries whose parts can be shared, over tables a, b, c of columns k, x."""

from __future__ import annotations

from hypothesis import strategies as st

CALLS = (
    "count(*)",
    "count(r.x)",
    "sum(r.x)",
    "coalesce(max(r.x), -1)",
    "min(r.k + r.x)",
    "avg(r.x)",
    "count(DISTINCT r.x)",
    "sum(r.x) FILTER (WHERE r.k > 0)",
)
SOURCES = (
    "a AS r",
    "(SELECT a.k, b.x FROM a JOIN b ON a.k = b.k) AS r",
    "(SELECT a.k, b.x FROM a LEFT JOIN b ON a.k = b.x) AS r",
    "(SELECT a.k, c.x FROM a, b, c WHERE a.k = b.k AND b.x = c.x) AS r",
    "(SELECT DISTINCT k, x FROM b) AS r",
)
TESTS = ("{k} = 1", "{k} > 0", "{k} IN (0, 2)", "{k} IS NULL", "{n} > 1", "{k} = {n}", "{t} = 's'")
ROW_TESTS = ("r.x = 1", "r.x > 0", "r.k BETWEEN 0 AND 1", "r.k IS NULL", "r.x <> r.k", "r.k = 2")


@st.composite
def repeated(draw: st.DrawFn) -> str:
    """A query of WITH that is named several times, each time under other conditions."""
    branches = [
        f"SELECT r.k AS k, ({draw(st.sampled_from(CALLS))})::int AS n, '{tag}' AS t"
        f" FROM {draw(st.sampled_from(SOURCES))}{draw(conditions())} GROUP BY r.k"
        for tag in draw(st.sampled_from(("s", "st", "stu")))
    ]
    inner = ""
    if draw(st.booleans()):
        inner = "p AS (SELECT k, max(n) AS n, t FROM q GROUP BY k, t), "
    places = draw(st.lists(st.sampled_from("pq" if inner else "q"), min_size=2, max_size=4))
    names = [f"y{i}" for i, _ in enumerate(places)]
    asked = [
        test.format(k=f"{name}.k", n=f"{name}.n", t=f"{name}.t")
        for name in names
        for test in draw(st.lists(st.sampled_from(TESTS), max_size=2))
    ]
    with_ = f"WITH q AS ({' UNION ALL '.join(branches)}), {inner}".removesuffix(", ")
    if draw(st.booleans()):
        tables = ", ".join(f"{one} AS {name}" for one, name in zip(places, names, strict=True))
        joined = [f"{name}.k = y0.k" for name in names[1:] if draw(st.integers(0, 3))]
        where = " AND ".join((*asked, *joined)) or "TRUE"
        shown = ", ".join(f"{name}.n AS n{i}" for i, name in enumerate(names))
        return f"{with_} SELECT y0.k, {shown} FROM {tables} WHERE {where}"
    selects = (
        f"SELECT {name}.k, {name}.n FROM {one} AS {name} WHERE "
        + (" AND ".join(test for test in asked if f"{name}." in test) or "TRUE")
        for one, name in zip(places, names, strict=True)
    )
    return f"{with_} {' UNION ALL '.join(selects)}"


@st.composite
def siblings(draw: st.DrawFn) -> str:
    """Aggregates without groups over the same rows, each under other conditions."""
    source = draw(st.sampled_from(SOURCES))
    several = [
        f"SELECT ({draw(st.sampled_from(CALLS))})::int AS n"
        f" FROM {draw(st.sampled_from((source, source, source, 'c AS r')))}{draw(conditions())}"
        for _ in range(draw(st.integers(2, 4)))
    ]
    if draw(st.booleans()):
        shown = ", ".join(f"({one}) AS n{i}" for i, one in enumerate(several))
        return f"SELECT c.k, {shown} FROM c"
    tables = ", ".join(f"({one}) AS s{i}" for i, one in enumerate(several))
    shown = ", ".join(f"s{i}.n AS n{i}" for i, _ in enumerate(several))
    return f"SELECT {shown} FROM {tables}"


@st.composite
def grouping_sets(draw: st.DrawFn) -> str:
    """Several groupings of the same rows."""
    sets = draw(
        st.sampled_from(
            (
                "ROLLUP (r.k, r.x)",
                "CUBE (r.k, r.x)",
                "GROUPING SETS ((r.k), (r.x))",
                "GROUPING SETS ((r.k), (r.x), ())",
                "GROUPING SETS ((r.k, r.x), (r.k), (r.k))",
                "ROLLUP (r.k), ROLLUP (r.x)",
                "r.k, ROLLUP (r.x)",
            )
        )
    )
    calls = ", ".join(
        f"({call})::int AS n{i}"
        for i, call in enumerate(draw(st.lists(st.sampled_from(CALLS), max_size=3)))
    )
    having = draw(st.sampled_from(("", "", " HAVING count(*) > 1", " HAVING r.k = 1")))
    shown = "r.k, r.x, GROUPING(r.k, r.x) AS g" if "r.x" in sets else "r.k"
    source = draw(st.sampled_from(SOURCES))
    query = (
        f"SELECT {shown}{', ' + calls if calls else ''} FROM {source}{draw(conditions())}"
        f" GROUP BY {sets}{having}"
    )
    outer = draw(st.sampled_from(("", "", " WHERE g.k = 1", " WHERE g.g = 0", " WHERE g.g = 3")))
    return f"SELECT * FROM ({query}) AS g{outer}"


@st.composite
def conditions(draw: st.DrawFn) -> str:
    tests = draw(st.lists(st.sampled_from(ROW_TESTS), max_size=2))
    return f" WHERE {' AND '.join(tests)}" if tests else ""


def queries() -> st.SearchStrategy[str]:
    return repeated() | siblings() | grouping_sets()
