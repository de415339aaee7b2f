"""What a stream table is computed by, as one short text."""

from __future__ import annotations

import json
from hashlib import sha256

from headrace.catalog import State
from headrace.catalog.records import StreamTable
from headrace.graph import upstream


def definition_fingerprint(state: State, table: StreamTable) -> str:
    """Return a text that changes whenever the definition of the table's rows changes.

    A table that is altered or rebuilt gets a new relation, and its readers get new inputs. So the
    text covers the table and every stream table below it.
    """
    definitions = sorted(
        (upstream_table.relation, upstream_table.query, sorted(upstream_table.inputs))
        for upstream_table in upstream(state.stream_tables, table)
    )
    return sha256(json.dumps(definitions).encode()).hexdigest()
