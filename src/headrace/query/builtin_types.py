"""The names that PostgreSQL has for types, and no other system's: a user's type may have those.

sqlglot takes `string` and `double` for types, and a quoted name for the same as one without quotes.
"""

from __future__ import annotations

from typing import ClassVar

from sqlglot.dialects.postgres import Postgres
from sqlglot.tokenizer_core import TokenType

_NAMES = frozenset(
    (
        *("BOOL", "BOOLEAN", "INT2", "SMALLINT", "INT", "INT4", "INTEGER", "INT8", "BIGINT"),
        *("REAL", "FLOAT", "FLOAT4", "FLOAT8", "DOUBLE PRECISION", "DEC", "DECIMAL", "NUMERIC"),
        *("CHAR", "CHARACTER", "BPCHAR", "CHAR VARYING", "CHARACTER VARYING", "VARCHAR", "TEXT"),
        *("BYTEA", "DATE", "TIME", "TIMESTAMP", "TIMESTAMPTZ", "INTERVAL", "UUID", "JSONB"),
    )
)
_TYPES = frozenset(Postgres.Tokenizer.KEYWORDS[name] for name in _NAMES)
# What stands in pg_type; int, decimal or char are words of the grammar, which quotes take away.
_QUOTED = frozenset(
    (
        *("bool", "int2", "int4", "int8", "float4", "float8", "numeric", "bpchar", "varchar"),
        *("text", "bytea", "date", "time", "timestamp", "timestamptz", "interval", "uuid", "jsonb"),
    )
)


class PostgresTokenizer(Postgres.Tokenizer):
    """sqlglot's tokenizer for PostgreSQL without other systems' names of the types we know."""

    KEYWORDS: ClassVar[dict[str, TokenType]] = {
        name: type_
        for name, type_ in Postgres.Tokenizer.KEYWORDS.items()
        if type_ not in _TYPES or name in _NAMES
    }


class NotBuiltIn(set[str]):
    """All quoted names but those of built-in types."""

    def __contains__(self, name: object) -> bool:
        return name not in _QUOTED
