"""Who reads whom: orders and closures over the dependencies of stream tables. Pure."""

from headrace.graph.dependencies import Cycle, downstream, in_order, upstream

__all__ = ["Cycle", "downstream", "in_order", "upstream"]
