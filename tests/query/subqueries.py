"""Random queries with queries inside their expressions, over tables a, b, c of columns k, x."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from headrace.query import BoundColumn, BoundTable
from headrace.types import INTEGER

TABLES = ("a", "b", "c")


class Small:
    """The schema of the three tables; relations have their names."""

    def resolve(self, schema: str | None, name: str) -> BoundTable | None:
        if name not in TABLES or schema not in (None, "public"):
            return None
        columns = tuple(
            BoundColumn(column, f"c{i}", INTEGER, "integer") for i, column in enumerate("kx", 1)
        )
        return BoundTable(name, "public", name, columns)


@dataclass(frozen=True)
class Seen:
    """The aliases whose columns an expression may read, the innermost last."""

    aliases: tuple[str, ...]

    def deeper(self) -> tuple[Seen, str]:
        alias = f"t{len(self.aliases) + 1}"
        return Seen((*self.aliases, alias)), alias


@st.composite
def numbers(draw: st.DrawFn, seen: Seen, depth: int) -> str:
    """An integer expression; the innermost table is read most."""
    alias = draw(st.sampled_from((*seen.aliases, seen.aliases[-1])))
    column = f"{alias}.{draw(st.sampled_from('kx'))}"
    match draw(st.integers(0, 5)):
        case 0:
            return str(draw(st.integers(-1, 2)))
        case 1:
            return f"coalesce({column}, 0)"
        case 2 if depth:
            return draw(scalars(seen, depth - 1))
        case _:
            return column


@st.composite
def scalars(draw: st.DrawFn, seen: Seen, depth: int) -> str:
    """A scalar subquery of at most one row."""
    inner, alias = seen.deeper()
    # An aggregate of columns that are all outer would belong to the outer query.
    number = f"{alias}.x + {draw(numbers(inner, depth))}"
    aggregate = draw(
        st.sampled_from(
            (
                "count(*)",
                f"count({number})",
                f"max({number})",
                f"coalesce(sum({number}), 0) + 7",
                f"min({alias}.x) + count(*)",
            )
        )
    )
    outer = draw(st.sampled_from(("", "", f" + coalesce({seen.aliases[-1]}.k, 1)")))
    having = draw(st.sampled_from(("", "", " HAVING count(*) > 1")))
    source, where = draw(sources(inner, alias, depth))
    return f"(SELECT ({aggregate}{outer})::int FROM {source}{where}{having})"


@st.composite
def sources(draw: st.DrawFn, inner: Seen, alias: str, depth: int) -> tuple[str, str]:
    """FROM and WHERE of an inner query; derived tables may be correlated, too."""
    table = draw(st.sampled_from(TABLES))
    kind = draw(st.integers(0, 5))
    condition = draw(conditions(inner, depth))
    where = draw(st.sampled_from(("", f" WHERE {condition}", f" WHERE {condition}")))
    around = Seen(inner.aliases[:-1])
    if kind == 0:
        return f"(SELECT DISTINCT k, x FROM {table}) {alias}", where
    if kind == 1:
        filtered = f"{table}.k = {around.aliases[-1]}.k"
        return f"(SELECT k, x FROM {table} WHERE {filtered}) {alias}", where
    if kind == 2:
        return f"(SELECT k, max(x) AS x FROM {table} GROUP BY k) {alias}", where
    if kind == 3:
        other = draw(st.sampled_from(TABLES))
        return f"{table} {alias} JOIN {other} u ON u.k = {alias}.k", where
    return f"{table} {alias}", where


@st.composite
def tests(draw: st.DrawFn, seen: Seen, depth: int) -> str:
    """EXISTS, IN, ANY or ALL."""
    inner, alias = seen.deeper()
    source, where = draw(sources(inner, alias, depth))
    left, right = draw(numbers(seen, 0)), draw(numbers(inner, depth))
    comparison = draw(st.sampled_from(("=", "<>", "<", ">=")))
    query = f"SELECT {right} FROM {source}{where}"
    pairs = f"SELECT {alias}.k, {right} FROM {source}{where}"
    grouped = f"SELECT {alias}.k FROM {source}{where} GROUP BY {alias}.k HAVING count(*) > 1"
    return draw(
        st.sampled_from(
            (
                f"EXISTS ({query})",
                f"NOT EXISTS ({query})",
                f"{left} IN ({query})",
                f"{left} NOT IN ({query})",
                f"{left} IN ({grouped})",
                f"{left} {comparison} ANY ({query})",
                f"{left} {comparison} ALL ({query})",
                f"({left}, {seen.aliases[-1]}.x) IN ({pairs})",
                f"({left}, {seen.aliases[-1]}.x) NOT IN ({pairs})",
            )
        )
    )


@st.composite
def conditions(draw: st.DrawFn, seen: Seen, depth: int) -> str:
    alias = seen.aliases[-1]
    outer = seen.aliases[-2] if len(seen.aliases) > 1 else alias
    plain = draw(
        st.sampled_from(
            (
                f"{alias}.k = {outer}.k",
                f"{alias}.k = {outer}.x",
                f"{alias}.x < {outer}.x",
                f"{alias}.k IS NOT DISTINCT FROM {outer}.k",
                f"{alias}.x > 0",
                f"{outer}.k = 1",
            )
        )
    )
    if depth == 0:
        return plain
    test = draw(tests(seen, depth - 1))
    return draw(
        st.sampled_from(
            (
                plain,
                test,
                f"{plain} AND {test}",
                f"({plain} OR {test})",
                f"NOT ({plain} AND {test})",
                f"CASE WHEN {test} THEN {plain} ELSE {alias}.k = 2 END",
                f"({test}) IS NULL",
            )
        )
    )


@st.composite
def queries(draw: st.DrawFn) -> str:
    """A query with inner queries in SELECT, WHERE, HAVING, ON or LATERAL."""
    seen = Seen(("t1",))
    table = draw(st.sampled_from(TABLES))
    condition = draw(conditions(seen, 2))
    match draw(st.integers(0, 5)):
        case 0:
            value = draw(scalars(seen, 1))
            return f"SELECT t1.k, t1.x, {value} AS v FROM {table} t1"
        case 1:
            test = draw(tests(seen, 1))
            return f"SELECT t1.k, ({test}) AS v FROM {table} t1"
        case 2:
            test = draw(tests(Seen(("t1",)), 1)).replace("t1.x", "t1.k")
            return f"SELECT t1.k, count(*) AS n FROM {table} t1 GROUP BY t1.k HAVING {test}"
        case 3:
            inner, alias = seen.deeper()
            source, where = draw(sources(inner, alias, 1))
            lateral = f"SELECT {alias}.k AS y, t1.x AS z FROM {source}{where}"
            counted = f"SELECT count(*) AS y FROM {source}{where}"
            several = f"SELECT count({alias}.x) + t1.k AS y, sum({alias}.k) FROM {source}{where}"
            held = f" HAVING max({alias}.k) >= t1.k"
            having = draw(st.sampled_from(("", " HAVING count(*) < 2", held)))
            joined = draw(
                st.sampled_from(
                    (
                        f"{table} t1, LATERAL ({lateral}) q",
                        f"{table} t1 LEFT JOIN LATERAL ({lateral}) q ON q.y > 0",
                        f"{table} t1 CROSS JOIN LATERAL ({counted}) q",
                        f"{table} t1 JOIN LATERAL ({several}{having}) q ON q.y > t1.x",
                        f"{table} t1 LEFT JOIN LATERAL ({several}{having}) q ON true",
                        f"{table} t1 LEFT JOIN LATERAL ({several}{having}) q ON q.y > 1",
                    )
                )
            )
            return f"SELECT t1.k, t1.x, q.y FROM {joined}"
        case _:
            return f"SELECT t1.k, t1.x FROM {table} t1 WHERE {condition}"
