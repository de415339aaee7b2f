"""PostgreSQL's SQL to a plan: parse, check, bind, type. Pure: no server, no Spark."""

from headrace.query.bind import BoundQuery, bind, bind_columns, table_names
from headrace.query.output_names import first_names
from headrace.query.schema import BoundColumn, BoundTable, BoundView, Schema

__all__ = [
    "BoundColumn",
    "BoundQuery",
    "BoundTable",
    "BoundView",
    "Schema",
    "bind",
    "bind_columns",
    "first_names",
    "table_names",
]
