"""What is found to be done, from definitions and records built by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.catalog import State
from headrace.catalog.records import Status, StreamTable
from headrace.errors import UserError
from headrace.lifecycle.cycle_members import Name
from headrace.lifecycle.planned_table import TableRequest
from headrace.project.difference import difference
from headrace.project.document import plan_document, plan_of
from headrace.project.plan import Act, ProjectPlan, TableChange, refuse_stale
from headrace.project.read import DefinedTable


def table(name: str, query: str, *inputs: str, **options: Any) -> StreamTable:
    """A stream table of the catalog that reads these others, and a source."""
    asked = TableRequest.of(name, query, options)
    return StreamTable(
        f"r{name}",
        "public",
        name,
        query,
        (),
        ("rsource", *(f"r{one}" for one in inputs)),
        refresh_mode=asked.refresh_mode,
        schedule=asked.schedule,
        options=asked.options,
        status=Status.ACTIVE,
    )


def wanted(name: str, query: str, **options: Any) -> DefinedTable:
    return DefinedTable(("public", name), TableRequest.of(name, query, options), f"{name}.sql", 1)


def catalog(*tables: StreamTable) -> State:
    return State.of((), (), (), tables, {})


def planned(
    folder: list[DefinedTable],
    state: State,
    reads: dict[str, set[str]] | None = None,
    *,
    prune: bool = False,
) -> ProjectPlan:
    names: dict[Name, frozenset[Name]] = {
        ("public", name): frozenset(("public", one) for one in read)
        for name, read in (reads or {}).items()
    }
    return difference("folder", folder, state, names, prune=prune)


def acts(plan: ProjectPlan) -> dict[str, str]:
    return {one.name[1]: one.act.value for one in plan.changes}


def reason(plan: ProjectPlan, name: str) -> str:
    (found,) = [one.reason for one in plan.changes if one.name[1] == name]
    return found


CHAIN = catalog(table("a", "qa"), table("b", "qb", "a"), table("c", "qc", "b"), table("d", "qd"))


def test_nothing_differs() -> None:
    folder = [wanted(name, f"\n q{name} ") for name in "abcd"]
    plan = planned(folder, CHAIN)
    assert acts(plan) == dict.fromkeys("abcd", "unchanged")
    assert plan.nothing_to_do
    assert planned([], State()).nothing_to_do
    assert planned([], State()).counts == {}


def test_only_the_ends_of_a_query_do_not_count() -> None:
    state = catalog(table("a", "SELECT  1;"))
    assert acts(planned([wanted("a", "SELECT 1;")], state)) == {"a": "rebuild"}
    assert acts(planned([wanted("a", "select  1;")], state)) == {"a": "rebuild"}
    assert acts(planned([wanted("a", "\tSELECT  1;\n")], state)) == {"a": "unchanged"}


def test_new_tables_are_created() -> None:
    plan = planned([wanted("a", "qa"), wanted("n", "qn")], catalog(table("a", "qa")), {"n": {"a"}})
    assert plan.of(Act.CREATE) == (
        TableChange(Act.CREATE, ("public", "n"), "not there yet", place="n.sql, line 1"),
    )
    assert not plan.nothing_to_do
    assert plan.counts == {Act.CREATE: 1, Act.UNCHANGED: 1}


def test_a_rebuilt_table_takes_all_that_rests_on_it_along() -> None:
    folder = [wanted("a", "other"), wanted("b", "qb"), wanted("c", "qc"), wanted("d", "qd")]
    plan = planned(folder, CHAIN)
    assert acts(plan) == {"a": "rebuild", "b": "follow", "c": "follow", "d": "unchanged"}
    (rebuilt,) = plan.of(Act.REBUILD)
    assert rebuilt.rebuilt_readers == ("public.b", "public.c")
    assert (rebuilt.reason, rebuilt.options) == ("the query differs", {})
    assert reason(plan, "c") == "rebuilt: it reads public.a"


def test_other_partitions_rebuild_a_table() -> None:
    state = catalog(table("a", "qa", tier="hot"), table("b", "qb", "a"))
    folder = [wanted("a", "qa", partition_by="x"), wanted("b", "qb")]
    plan = planned(folder, state)
    assert acts(plan) == {"a": "rebuild", "b": "follow"}
    assert reason(plan, "a") == "tier: hot → default; partition_by: default → x"
    parted = catalog(table("a", "qa", partition_by="x"), table("b", "qb", "a"))
    assert planned(folder, parted).nothing_to_do
    plan = planned([wanted("a", "other"), wanted("b", "qb")], parted)
    assert reason(plan, "a") == "the query differs; partition_by: x → default"


def test_several_causes_and_tables_outside_of_the_folder() -> None:
    plan = planned([wanted("a", "other"), wanted("b", "other")], CHAIN)
    assert acts(plan) == {"a": "rebuild", "b": "rebuild", "c": "follow", "d": "leave"}
    assert reason(plan, "c") == "not in the folder; rebuilt: it reads public.a, public.b"
    assert {one.name[1]: one.rebuilt_readers for one in plan.of(Act.REBUILD)} == {
        "a": ("public.b", "public.c"),
        "b": ("public.c",),
    }


def test_a_suspended_reader_is_rebuilt_later() -> None:
    held = replace(table("b", "qb", "a"), status=Status.SUSPENDED, reason="by hand", held=True)
    state = catalog(table("a", "qa"), held)
    plan = planned([wanted("a", "other"), wanted("b", "qb")], state)
    assert reason(plan, "b") == (
        "rebuilt when it is resumed, for it is suspended: it reads public.a"
    )
    plan = planned([wanted("a", "qa"), wanted("b", "qb")], state)
    assert plan.nothing_to_do, "a folder does not say what is suspended"


def test_tables_that_read_each_other_follow_once() -> None:
    state = catalog(table("a", "qa", "b"), table("b", "qb", "a"), table("c", "qc", "c"))
    plan = planned([wanted("a", "other"), wanted("b", "qb"), wanted("c", "other")], state)
    assert acts(plan) == {"a": "rebuild", "b": "follow", "c": "rebuild"}
    assert [one.rebuilt_readers for one in plan.of(Act.REBUILD)] == [("public.b",), ()]


def test_options_are_altered_in_place() -> None:
    state = catalog(table("a", "qa", schedule="1m", tier="hot"), table("b", "qb", "a"))
    folder = [wanted("a", "qa", max_change_rows="5", refresh_mode="full"), wanted("b", "qb")]
    plan = planned(folder, state)
    assert acts(plan) == {"a": "alter", "b": "unchanged"}
    (altered,) = plan.of(Act.ALTER)
    assert altered.options == {
        "schedule": None,
        "refresh_mode": "FULL",
        "tier": None,
        "max_change_rows": 5,
    }
    assert altered.reason == (
        "schedule: 1m → by hand; refresh_mode: AUTO → FULL; tier: hot → default;"
        " max_change_rows: default → 5"
    )


def test_options_beside_another_reason() -> None:
    state = catalog(table("a", "qa"), table("b", "qb", "a"))
    plan = planned([wanted("a", "other", tier="cold"), wanted("b", "qb", tier="warm")], state)
    assert acts(plan) == {"a": "rebuild", "b": "alter"}
    assert reason(plan, "a") == "the query differs; tier: default → cold"
    assert reason(plan, "b") == "tier: default → warm; rebuilt: it reads public.a"


def test_what_is_not_in_the_folder_is_left_alone_or_pruned() -> None:
    folder = [wanted("a", "qa"), wanted("d", "qd")]
    plan = planned(folder, CHAIN)
    assert acts(plan) == {"a": "unchanged", "b": "leave", "c": "leave", "d": "unchanged"}
    assert plan.nothing_to_do
    pruned = planned(folder, CHAIN, prune=True)
    assert acts(pruned) == {"a": "unchanged", "b": "drop", "c": "drop", "d": "unchanged"}
    assert not pruned.nothing_to_do
    assert acts(planned([], CHAIN, prune=True)) == dict.fromkeys("abcd", "drop")


def test_dropped_tables_are_not_rebuilt() -> None:
    plan = planned([wanted("a", "other")], CHAIN, prune=True)
    assert acts(plan) == {"a": "rebuild", "b": "drop", "c": "drop", "d": "drop"}
    assert plan.of(Act.REBUILD)[0].rebuilt_readers == ()


def test_what_a_table_of_the_folder_reads_cannot_be_pruned() -> None:
    folder = [wanted("b", "qb"), wanted("c", "qc")]
    with pytest.raises(UserError) as caught:
        planned(folder, CHAIN, {"b": {"a"}, "c": {"b"}}, prune=True)
    assert caught.value.code == "has-dependents"
    assert caught.value.message == "public.a is not in the folder, and public.b reads it"
    assert not planned(folder, CHAIN, {"b": {"a"}, "c": {"b"}}).of(Act.DROP)
    # With another query it no longer does.
    folder = [wanted("b", "other"), wanted("c", "qc")]
    plan = planned(folder, CHAIN, {"b": set(), "c": {"b"}}, prune=True)
    assert acts(plan) == {"a": "drop", "b": "rebuild", "c": "follow", "d": "drop"}


QUERIES = st.sampled_from(["q1", "q2"])
GIVEN = st.fixed_dictionaries({}, optional={"tier": st.sampled_from(["hot", "cold"])})
NAMES = ("a", "b", "c", "d", "e")
TABLES = st.dictionaries(st.sampled_from(NAMES), st.tuples(QUERIES, GIVEN))


@settings(deadline=None)
@given(TABLES, TABLES, st.sets(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES))))
def test_after_what_a_plan_says_there_is_nothing_left_to_do(
    there: dict[str, Any], requested: dict[str, Any], edges: set[tuple[str, str]]
) -> None:
    """The acts are done to records by hand; nothing else may be needed."""
    before = {
        name: table(name, query, *(b for a, b in edges if a == name and b in there), **options)
        for name, (query, options) in there.items()
    }
    folder = [wanted(name, query, **options) for name, (query, options) in requested.items()]
    for prune in (False, True):
        plan = planned(folder, catalog(*before.values()), prune=prune)
        assert sorted(acts(plan)) == sorted(there.keys() | requested.keys()), "each once"
        after = dict(before)
        for one in plan.changes:
            name = one.name[1]
            if one.act in (Act.CREATE, Act.REBUILD):
                after[name] = table(name, requested[name][0], **requested[name][1])
            elif one.act is Act.ALTER:
                options = {**after[name].options, **one.options}
                kept = {option: v for option, v in options.items() if v is not None}
                after[name] = replace(after[name], options=kept)
            elif one.act is Act.DROP:
                del after[name]
            else:
                assert (name in requested) == (requested.get(name) == there[name])
        left = planned(folder, catalog(*after.values()), prune=prune)
        assert left.nothing_to_do
        assert set(after) == set(requested) | (set() if prune else set(there))
        rebuilt = {one.name[1] for one in plan.of(Act.REBUILD)}
        assert rebuilt == {n for n in requested if n in there and there[n][0] != requested[n][0]}
        assert plan.nothing_to_do == (after == before)


def test_plans_travel_as_json() -> None:
    state = catalog(table("a", "qa"), table("b", "qb", "a"), table("d", "qd"))
    folder = [wanted("a", "other"), wanted("b", "qb", tier="warm"), wanted("n", "qn")]
    plan = planned(folder, state, prune=True)
    assert plan_of(plan_document(plan)) == plan
    assert str(plan).splitlines()[0] == "rebuild  public.a  the query differs"


def test_a_plan_is_stale_when_definitions_or_tables_differ() -> None:
    folder = [wanted("a", "qa"), wanted("n", "qn")]
    before = catalog(table("a", "qa"), table("b", "qb", "a"))
    plan = planned(folder, before)
    refuse_stale(plan, planned(list(reversed(folder)), before))

    def stale(found: ProjectPlan) -> str:
        with pytest.raises(UserError) as caught:
            refuse_stale(plan, found)
        assert caught.value.code == "stale-plan"
        return caught.value.detail or ""

    folder_changed = "The folder has changed since."
    tables = "Stream tables were created, altered or dropped since."
    assert stale(planned([wanted("a", "qa"), wanted("n", "other")], before)) == folder_changed
    assert stale(planned(folder[:1], before)) == folder_changed
    assert stale(planned(folder, catalog(table("a", "qa")))) == tables
    assert stale(planned(folder, catalog(table("a", "qa"), table("b", "qb")))) == tables
    altered = catalog(table("a", "qa", tier="warm"), table("b", "qb", "a"))
    assert stale(planned(folder, altered)) == tables
    assert stale(planned([], State())) == f"{folder_changed} {tables}"


def test_a_refresh_does_not_make_a_plan_stale() -> None:
    before = table("a", "qa")
    after = replace(before, relation="rnew", epoch=7, frontier={"rsource": 7}, failures=2)
    folder = [wanted("a", "other")]
    refuse_stale(planned(folder, catalog(before)), planned(folder, catalog(after)))
