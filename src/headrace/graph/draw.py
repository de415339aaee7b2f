"""The network as text, as Mermaid and as DOT. Pure.

Edges go from what is read to its readers. Those that are not monotone are dashed and labelled with
their operators; stream tables that read each other stand in a box.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from headrace.graph.components import Component
from headrace.graph.network import Network


def draw_text(network: Network) -> str:
    """Return one paragraph a stratum, one line a table, below it what it reads."""
    lines = ["sources", *(f"  {name}" for name in network.sources)] if network.sources else []
    for stratum, parts in _layers(network):
        lines.append(f"stratum {stratum}")
        for component in parts:
            indent = "  "
            if component.is_cyclic:
                lines.append(f"  component {component.id}: every row once")
                indent = "    "
            for member in component.members:
                lines.append(f"{indent}{member}")
                for edge in network.edges:
                    if edge.reader == member:
                        arrow = "<--" if edge.monotone else "<- -"
                        label = "".join(f" [{operator}]" for operator in edge.operators)
                        lines.append(f"{indent}  {arrow} {edge.read}{label}")
    return "\n".join(lines)


def draw_mermaid(network: Network) -> str:
    """Return a flowchart; strata and components are subgraphs."""
    ids = _ids(network)
    lines = ["flowchart LR"]
    lines += [f"  {ids[name]}[({_mermaid(name)})]" for name in network.sources]
    for stratum, parts in _layers(network):
        lines.append(f'  subgraph stratum{stratum}["stratum {stratum}"]')
        for component in parts:
            nodes = [f"{ids[member]}[{_mermaid(member)}]" for member in component.members]
            if component.is_cyclic:
                lines.append(f'    subgraph component{component.id}["component {component.id}"]')
                lines += [f"      {node}" for node in nodes]
                lines.append("    end")
            else:
                lines += [f"    {node}" for node in nodes]
        lines.append("  end")
    for edge in network.edges:
        arrow = "-->" if edge.monotone else f"-. {_mermaid(', '.join(edge.operators))} .->"
        lines.append(f"  {ids[edge.read]} {arrow} {ids[edge.reader]}")
    return "\n".join(lines)


def draw_dot(network: Network) -> str:
    """Return a digraph for Graphviz; strata and components are clusters."""
    ids = _ids(network)
    lines = ["digraph headrace {", "  rankdir=LR;", "  node [shape=box];"]
    lines += [f"  {ids[name]} [label={_dot(name)}, shape=cylinder];" for name in network.sources]
    for stratum, parts in _layers(network):
        lines.append(f"  subgraph cluster_stratum{stratum} {{")
        lines.append(f'    label="stratum {stratum}"; style=dotted;')
        for component in parts:
            nodes = [f"{ids[member]} [label={_dot(member)}];" for member in component.members]
            if component.is_cyclic:
                lines.append(f"    subgraph cluster_component{component.id} {{")
                lines.append(f'      label="component {component.id}"; style=solid;')
                lines += [f"      {node}" for node in nodes]
                lines.append("    }")
            else:
                lines += [f"    {node}" for node in nodes]
        lines.append("  }")
    for edge in network.edges:
        label = _dot(", ".join(edge.operators))
        style = "" if edge.monotone else f" [style=dashed, label={label}]"
        lines.append(f"  {ids[edge.read]} -> {ids[edge.reader]}{style};")
    return "\n".join((*lines, "}"))


FORMATS: dict[str, Callable[[Network], str]] = {
    "text": draw_text,
    "mermaid": draw_mermaid,
    "dot": draw_dot,
}


def _layers(network: Network) -> Iterator[tuple[int, list[Component[str]]]]:
    """Return the strata that have stream tables, with their components."""
    layers: dict[int, list[Component[str]]] = {}
    for component in network.components:
        layers.setdefault(network.strata[component.members[0]], []).append(component)
    yield from sorted(layers.items(), key=lambda layer: layer[0])


def _ids(network: Network) -> dict[str, str]:
    """Return short names that every language takes as they are."""
    return {name: f"n{number}" for number, name in enumerate(network.strata, 1)}


def _mermaid(text: str) -> str:
    """Return the text in quotes, with entities for what ends them, or begins a tag or an entity."""
    entities = {'"': "#quot;", "#": "#35;", "<": "#lt;", ">": "#gt;", "\n": " "}
    return '"' + "".join(entities.get(letter, letter) for letter in text) + '"'


def _dot(text: str) -> str:
    """Return the text in quotes, as DOT reads it back."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'
