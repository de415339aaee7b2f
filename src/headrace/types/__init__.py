"""The one table of types: PostgreSQL ↔ Arrow ↔ Spark ↔ served column."""

from headrace.types.kinds import KINDS, Kind
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
    "Kind",
    "Type",
    "array_of",
    "from_postgres",
    "has_arrays",
    "numeric",
    "result_numeric",
]
