"""The one table of types: PostgreSQL ↔ Arrow ↔ Spark ↔ served column."""

from headrace.types.collation import Collation, default_collation, plain_text
from headrace.types.kind import Kind
from headrace.types.kinds import KINDS
from headrace.types.type import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    NUMERIC_SCALE,
    TEXT,
    Type,
    array_of,
    from_postgres,
    has_arrays,
    numeric,
    plain_numeric,
    result_numeric,
)

__all__ = [
    "BIGINT",
    "BOOLEAN",
    "DOUBLE",
    "INTEGER",
    "KINDS",
    "NUMERIC_SCALE",
    "TEXT",
    "Collation",
    "Kind",
    "Type",
    "array_of",
    "default_collation",
    "from_postgres",
    "has_arrays",
    "numeric",
    "plain_numeric",
    "plain_text",
    "result_numeric",
]
