"""The network of stream tables: its parts, what users see of it, and how it is drawn."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from headrace.catalog.records import OutputColumn, Refresh, Source, StratumTicks, StreamTable
from headrace.catalog.state import State
from headrace.graph.draw import FORMATS, draw_dot, draw_mermaid, draw_text
from headrace.graph.network import Network, NetworkEdge
from headrace.observe.strata_status import (
    components_of,
    explain_network,
    names_of,
    network_of,
    strata_of,
)
from headrace.source.table import SourceColumn
from headrace.types import INTEGER

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
NETWORK = Network(
    {
        "s.far": {"s.near": (), "s.edges": ()},
        "s.near": {"s.far": (), "s.blocked": ("NOT EXISTS",)},
        "s.blocked": {"s.edges": ()},
        "s.count": {"s.far": ("aggregate",)},
    }
)


def test_tables_and_sources_come_after_what_they_read() -> None:
    assert NETWORK.tables == ("s.blocked", "s.far", "s.near", "s.count")
    assert NETWORK.sources == ("s.edges",)
    assert [one.members for one in NETWORK.components] == [
        ("s.blocked",),
        ("s.far", "s.near"),
        ("s.count",),
    ]
    assert NETWORK.component("s.near").id == 1
    assert NETWORK.component("s.count").id is None


def test_edges_say_how_a_table_depends() -> None:
    assert NETWORK.edges == (
        NetworkEdge("s.blocked", "s.edges"),
        NetworkEdge("s.far", "s.edges"),
        NetworkEdge("s.far", "s.near"),
        NetworkEdge("s.near", "s.blocked", ("NOT EXISTS",)),
        NetworkEdge("s.near", "s.far"),
        NetworkEdge("s.count", "s.far", ("aggregate",)),
    )
    assert str(NETWORK.edges[3]) == "s.near reads s.blocked (NOT EXISTS)"


def test_the_part_below_some_tables() -> None:
    assert NETWORK.below(["s.near"]).tables == ("s.blocked", "s.far", "s.near")
    assert NETWORK.below(["s.blocked"]).reads == {"s.blocked": {"s.edges": ()}}


def test_strata_as_users_see_them() -> None:
    lowest, middle, highest = strata_of(
        NETWORK, [StratumTicks(1, 2, 5, True, NOON), StratumTicks(9, 1, 1)]
    )
    assert (lowest.stratum, lowest.members, lowest.has_cycles) == (0, ("s.blocked",), False)
    assert (middle.stratum, middle.members, middle.has_cycles) == (1, ("s.far", "s.near"), True)
    assert (middle.member_count, middle.refreshed, middle.skipped) == (2, 2, 5)
    assert (middle.skipped_last, middle.last_tick_at) == (True, NOON)
    assert middle.non_monotone_edges == (NetworkEdge("s.near", "s.blocked", ("NOT EXISTS",)),)
    assert (highest.stratum, highest.members, highest.skipped) == (2, ("s.count",), 0)
    assert strata_of(Network({})) == ()


def refresh(minutes: int, iterations: int | None, error: str | None = None) -> Refresh:
    at = NOON + timedelta(minutes=minutes)
    return Refresh(
        "r", 1, "DIFFERENTIAL", "", 0, 0, {}, 0, at, at, iterations=iterations, error=error
    )


def test_components_as_users_see_them() -> None:
    (alone,) = components_of(NETWORK)
    assert (alone.scc_id, alone.members, alone.member_count) == (1, ("s.far", "s.near"), 2)
    assert (alone.last_iterations, alone.last_converged_at) == (None, None)
    # Outside of the component, but read by NOT EXISTS.
    assert not alone.monotone
    (component,) = components_of(
        NETWORK,
        [
            ("s.far", refresh(9, 7, "not-converged: no")),
            ("s.far", refresh(3, 4)),
            ("s.far", refresh(1, 2)),
            ("s.near", refresh(5, None)),
            ("s.near", refresh(2, 3)),
            ("s.count", refresh(8, 8)),
        ],
    )
    assert (component.last_iterations, component.last_converged_at) == (
        4,
        NOON + timedelta(minutes=3),
    )
    (monotone,) = components_of(Network({"a": {"a": (), "b": ()}}))
    assert monotone.monotone


def test_unstratifiable_reads_are_reported_and_not_raised() -> None:
    explained = explain_network(NETWORK.with_tables({"s.blocked": {"s.count": ("EXCEPT",)}}))
    assert {(one.reader, one.read) for one in explained.unstratifiable} == {
        ("s.blocked", "s.count"),
        ("s.count", "s.far"),
        ("s.near", "s.blocked"),
    }
    text = str(explained)
    assert (
        "  s.blocked reads s.count under EXCEPT, which depends on it:"
        " s.blocked → s.near → s.far → s.count → s.blocked" in text.splitlines()
    )
    assert "unstratifiable" not in str(explain_network(NETWORK))
    assert "component 1: every row once\n  s.far, s.near" in str(explain_network(NETWORK))


COLUMN = (OutputColumn("x", INTEGER, "integer"),)


def source(relation: str, name: str) -> Source:
    column = SourceColumn(1, "x", "integer", INTEGER)
    return Source(relation, 1, 7, "public", name, (column,), (), "1/0")


def table(relation: str, name: str, query: str, *inputs: str) -> StreamTable:
    return StreamTable(relation, "public", name, query, COLUMN, inputs)


def test_edges_that_were_not_kept_are_classified_from_the_query() -> None:
    old = table("r2", "a", "SELECT DISTINCT x FROM t EXCEPT SELECT x FROM u", "r1", "r9")
    kept = replace(table("r3", "b", "never bound", "r1"), edges={"r1": ("window",)})
    broken = table("r4", "c", "SELECT nothing FROM t", "r1")
    state = State(sources=(source("r1", "t"), source("r9", "u")), stream_tables=(old, kept, broken))
    assert network_of(state).reads == {
        "public.a": {"public.t": (), "public.u": ("EXCEPT",)},
        "public.b": {"public.t": ("window",)},
        "public.c": {"public.t": ("unknown",)},
    }


def test_no_two_relations_are_called_the_same() -> None:
    """A source that was dropped, and a stream table that has its name now."""
    state = State(sources=(source("r1", "t"),), stream_tables=(table("r2", "t", "", "r1"),))
    assert names_of(state) == {"r2": "public.t", "r1": "public.t (r1)"}


def test_drawn_as_text() -> None:
    assert (
        draw_text(NETWORK)
        == """\
sources
  s.edges
stratum 0
  s.blocked
    <-- s.edges
stratum 1
  component 1: every row once
    s.far
      <-- s.edges
      <-- s.near
    s.near
      <- - s.blocked [NOT EXISTS]
      <-- s.far
stratum 2
  s.count
    <- - s.far [aggregate]"""
    )


def test_drawn_as_mermaid() -> None:
    assert (
        draw_mermaid(NETWORK)
        == """\
flowchart LR
  n1[("s.edges")]
  subgraph stratum0["stratum 0"]
    n2["s.blocked"]
  end
  subgraph stratum1["stratum 1"]
    subgraph component1["component 1"]
      n3["s.far"]
      n4["s.near"]
    end
  end
  subgraph stratum2["stratum 2"]
    n5["s.count"]
  end
  n1 --> n2
  n1 --> n3
  n4 --> n3
  n2 -. "NOT EXISTS" .-> n4
  n3 --> n4
  n3 -. "aggregate" .-> n5"""
    )


def test_drawn_as_dot() -> None:
    assert (
        draw_dot(NETWORK)
        == """\
digraph headrace {
  rankdir=LR;
  node [shape=box];
  n1 [label="s.edges", shape=cylinder];
  subgraph cluster_stratum0 {
    label="stratum 0"; style=dotted;
    n2 [label="s.blocked"];
  }
  subgraph cluster_stratum1 {
    label="stratum 1"; style=dotted;
    subgraph cluster_component1 {
      label="component 1"; style=solid;
      n3 [label="s.far"];
      n4 [label="s.near"];
    }
  }
  subgraph cluster_stratum2 {
    label="stratum 2"; style=dotted;
    n5 [label="s.count"];
  }
  n1 -> n2;
  n1 -> n3;
  n4 -> n3;
  n2 -> n4 [style=dashed, label="NOT EXISTS"];
  n3 -> n4;
  n3 -> n5 [style=dashed, label="aggregate"];
}"""
    )


def test_names_that_would_be_syntax_are_quoted() -> None:
    odd = Network({'s."a] <b>#\\': {"s.t": ()}})
    assert '"s.#quot;a] #lt;b#gt;#35;\\"' in draw_mermaid(odd)
    assert r'label="s.\"a] <b>#\\"' in draw_dot(odd)
    assert 's."a] <b>#\\' in draw_text(odd)


@pytest.mark.parametrize("format_", FORMATS)
def test_nothing_is_drawn_of_nothing(format_: str) -> None:
    drawn = FORMATS[format_](Network({}))
    assert "stratum" not in drawn
