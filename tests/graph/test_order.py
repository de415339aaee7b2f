"""Orders over names that read each other."""

from __future__ import annotations

from dataclasses import replace

from headrace.catalog.records import StreamTable
from headrace.graph import downstream, find_cycle, in_order, upstream


def test_each_comes_after_those_it_reads() -> None:
    reads = {"c": ["a", "b"], "b": ["a"], "a": [], "d": ["outside"]}
    assert in_order(reads) == ("a", "b", "c", "outside", "d")
    assert find_cycle(reads) is None


def test_those_that_read_each_other_stand_side_by_side() -> None:
    reads = {"a": ["z"], "z": ["a", "b"], "b": [], "c": ["a"], "d": ["b"]}
    assert in_order(reads) == ("b", "a", "z", "c", "d")


def test_a_cycle_is_reported() -> None:
    found = find_cycle({"a": ["c"], "b": ["a"], "c": ["b"], "d": []})
    assert found is not None
    assert found.names == ("a", "b", "c")
    assert str(found) == "a → b → c → a"
    found = find_cycle({"a": ["a", "b"], "b": ["a"]})
    assert found is not None
    assert found.names == ("a",)


def table(name: str, *inputs: str) -> StreamTable:
    return StreamTable(name, "public", name, "", (), inputs)


# s → a ⇄ z → c, and b beside them.
TABLES = (table("c", "z"), table("z", "a", "s"), table("b", "s"), table("a", "z"))


def test_upstream_and_downstream_of_tables_that_read_each_other() -> None:
    c, z, b, a = TABLES
    assert upstream(TABLES, c) == (a, z, c)
    assert upstream(TABLES, a) == upstream(TABLES, z) == (a, z)
    assert upstream(TABLES, b) == (b,)
    assert downstream(TABLES, "s") == (a, z, b, c)
    assert downstream(TABLES, "a") == (z, c)
    assert downstream(TABLES, "a", "z") == (a, z, c)
    assert downstream(TABLES, "unknown") == ()


def test_a_table_that_reads_itself() -> None:
    alone = table("a", "a", "s")
    assert upstream((), alone) == (alone,)
    assert downstream((alone,), "a") == ()


def test_among_equals_the_order_is_that_of_schemas_and_names() -> None:
    first, second = table("y", "s"), replace(table("x", "s"), name="zz")
    assert downstream((second, first), "s") == (first, second)
