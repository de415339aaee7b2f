"""Status of strata and components of a project's stream tables, as users see it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from headrace.catalog.records import Refresh, Source, StratumTicks, StreamTable
from headrace.catalog.state import State
from headrace.graph.network import Network, NetworkEdge
from headrace.graph.policy import declared_groups
from headrace.graph.strata import Unstratifiable
from headrace.relations.definition import edges_of


@dataclass(frozen=True)
class StratumStatus:
    """One layer of stream tables.

    `non_monotone_edges` are those by which its members read what is below. `refreshed` counts the
    ticks of daemons in which members were refreshed, `skipped` those in which there was nothing to
    do for any of them; `skipped_last` says whether the latest, at `last_tick_at`, was one of these.
    """

    stratum: int
    member_count: int
    members: tuple[str, ...]
    has_cycles: bool
    non_monotone_edges: tuple[NetworkEdge, ...]
    refreshed: int = 0
    skipped: int = 0
    skipped_last: bool = False
    last_tick_at: datetime | None = None


@dataclass(frozen=True)
class ComponentStatus:
    """Stream tables that read each other, or one that reads itself.

    `last_iterations` are the rounds of the latest refresh that came to a fixed point,
    `last_converged_at` its end. `monotone` says that its members read everything monotonically,
    also relations outside the component.
    """

    scc_id: int
    member_count: int
    members: tuple[str, ...]
    last_iterations: int | None
    last_converged_at: datetime | None
    monotone: bool


@dataclass(frozen=True)
class StrataExplanation:
    """What strata tables have, or would have. `unstratifiable` is why some cannot be made."""

    strata: tuple[StratumStatus, ...]
    components: tuple[ComponentStatus, ...]
    edges: tuple[NetworkEdge, ...]
    unstratifiable: tuple[Unstratifiable[str], ...]

    def __str__(self) -> str:
        lines = []
        for stratum in self.strata:
            lines += [f"stratum {stratum.stratum}", *(f"  {name}" for name in stratum.members)]
        for part in self.components:
            members = ", ".join(part.members)
            lines += [f"component {part.scc_id}: every row once", f"  {members}"]
        lines += ["edges", *(f"  {edge}" for edge in self.edges)]
        lines += ["unstratifiable"] if self.unstratifiable else []
        lines += [f"  {sentence_of(edge)}" for edge in self.unstratifiable]
        return "\n".join(lines)


def sentence_of(found: Unstratifiable[str]) -> str:
    """Return a sentence with the edge, its operators and the whole cycle."""
    cycle = " → ".join((*found.path, found.path[0]))
    operators = ", ".join(found.operators)
    return f"{found.reader} reads {found.read} under {operators}, which depends on it: {cycle}"


def names_of(state: State) -> dict[str, str]:
    """Return the names that users see of sources and stream tables, all different, by relation."""
    origins: tuple[Source | StreamTable, ...] = (*state.stream_tables, *state.sources)
    names: dict[str, str] = {}
    for origin in origins:
        name = state.called(origin)
        # A table that was dropped may have left its name to another.
        taken = name in names.values()
        names[origin.relation] = f"{name} ({origin.relation})" if taken else name
    return names


def network_of(state: State) -> Network:
    """Return the network of all stream tables that exist."""
    names = names_of(state)
    return Network(
        {
            names[table.relation]: {
                names[relation]: operators
                for relation, operators in edges_of(table, state).items()
                if relation in names
            }
            for table in state.stream_tables
        },
        {
            names[relation]: group
            for relation, group in declared_groups(state.stream_tables).items()
        },
    )


def strata_of(network: Network, ticks: Iterable[StratumTicks] = ()) -> tuple[StratumStatus, ...]:
    """Return the strata that have stream tables, the lowest first, with their counts of ticks."""
    counted = {counts.stratum: counts for counts in ticks}
    layers: dict[int, list[str]] = {}
    for table in network.tables:
        layers.setdefault(network.strata[table], []).append(table)
    statuses = []
    for stratum, members in sorted(layers.items()):
        tick = counted.get(stratum, StratumTicks(stratum))
        statuses.append(
            StratumStatus(
                stratum,
                len(members),
                tuple(sorted(members)),
                any(network.component(name).is_cyclic for name in members),
                tuple(e for e in network.edges if e.reader in members and not e.monotone),
                tick.refreshed,
                tick.skipped,
                tick.skipped_last,
                tick.last_tick_at,
            )
        )
    return tuple(statuses)


def components_of(
    network: Network, refreshes: Iterable[tuple[str, Refresh]] = ()
) -> tuple[ComponentStatus, ...]:
    """Return the components that read themselves.

    `refreshes` are pairs of a table's name and a refresh, newest first.
    """
    latest: dict[str, Refresh] = {}
    for name, refresh in refreshes:
        if refresh.iterations is not None and refresh.error is None:
            latest.setdefault(name, refresh)
    statuses = []
    for component in network.components:
        if component.id is None:
            continue
        runs = [latest[name] for name in component.members if name in latest]
        last = max(runs, key=lambda run: run.finished_at, default=None)
        statuses.append(
            ComponentStatus(
                component.id,
                len(component.members),
                component.members,
                None if last is None else last.iterations,
                None if last is None else last.finished_at,
                all(edge.monotone for edge in network.edges if edge.reader in component.members),
            )
        )
    return tuple(statuses)


def explain_network(network: Network) -> StrataExplanation:
    """Return strata, components and edges of a network, and what is wrong with it."""
    return StrataExplanation(
        strata_of(network), components_of(network), network.edges, network.unstratifiable
    )
