"""Users' views as PostgreSQL spells them out, every name with its schema."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from psycopg import Connection

from headrace.source.faults import translated
from headrace.source.rights import FIRST_USER_OID

# Sessions have pg_catalog as their search path: every other name is printed with its schema.
VIEWS = """
SELECT n.nspname, c.relname, rtrim(pg_get_viewdef(c.oid), ';'), ARRAY(
    SELECT a.attname::text FROM pg_attribute a
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
)
FROM unnest(%(schemas)s::text[], %(names)s::text[]) AS wanted (schema, name)
JOIN pg_namespace n ON n.nspname = wanted.schema
JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = wanted.name
WHERE c.relkind = 'v' AND c.oid >= %(first)s
"""


@dataclass(frozen=True)
class FoundView:
    """A view as it is now."""

    text: str
    columns: tuple[str, ...]


def find_views(
    connection: Connection[Any], names: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], FoundView]:
    """Those of the names, schema and name, that are views of users now."""
    wanted = sorted(names)
    parameters = {
        "schemas": [schema for schema, _ in wanted],
        "names": [name for _, name in wanted],
        "first": FIRST_USER_OID,
    }
    with translated():
        rows = connection.execute(VIEWS, parameters).fetchall()
    return {(schema, name): FoundView(text, tuple(columns)) for schema, name, text, columns in rows}
