"""Who reads whom: orders and closures over the dependencies of stream tables. Pure."""

from headrace.graph.dependencies import downstream, upstream

__all__ = ["downstream", "upstream"]
