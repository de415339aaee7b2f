"""Dependency graph of stream tables: orders, components, strata, diamonds, closures. Pure."""

from headrace.graph.components import Component, Cycle, components, find_cycle
from headrace.graph.dependencies import downstream, in_order, upstream
from headrace.graph.diamonds import ConsistencyGroup, Diamond, diamonds, groups
from headrace.graph.edges import Edge, classify
from headrace.graph.strata import Unstratifiable, strata, unstratifiable

__all__ = [
    "Component",
    "ConsistencyGroup",
    "Cycle",
    "Diamond",
    "Edge",
    "Unstratifiable",
    "classify",
    "components",
    "diamonds",
    "downstream",
    "find_cycle",
    "groups",
    "in_order",
    "strata",
    "unstratifiable",
    "upstream",
]
