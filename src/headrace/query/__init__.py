"""PostgreSQL's SQL to a plan: parse, check, bind, type. Pure: no server, no Spark."""

from headrace.query.bind import BoundQuery, bind, table_names
from headrace.query.schema import BoundColumn, BoundTable, BoundView, Schema

__all__ = [
    "BoundColumn",
    "BoundQuery",
    "BoundTable",
    "BoundView",
    "Schema",
    "bind",
    "table_names",
]
