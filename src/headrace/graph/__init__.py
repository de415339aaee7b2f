"""Who reads whom: orders, components, strata and closures over stream tables. Pure."""

from headrace.graph.components import Component, Cycle, components, find_cycle
from headrace.graph.dependencies import downstream, in_order, upstream
from headrace.graph.edges import Edge, classify
from headrace.graph.strata import Unstratifiable, strata, unstratifiable

__all__ = [
    "Component",
    "Cycle",
    "Edge",
    "Unstratifiable",
    "classify",
    "components",
    "downstream",
    "find_cycle",
    "in_order",
    "strata",
    "unstratifiable",
    "upstream",
]
