"""Whether a relation in the log has the columns that are captured, by name and by type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from psycopg import Connection

from headrace.capture.wal.messages import RelationMessage
from headrace.source.faults import translated
from headrace.source.table import SourceColumn

# A type and its modifier, and how PostgreSQL writes them: SourceColumn.declared.
TypeNames = Mapping[tuple[int, int], str]

TYPE_NAMES = """
SELECT t.oid, t.typmod, format_type(t.oid, t.typmod)
FROM unnest(%(oids)s::oid[], %(typmods)s::integer[]) AS t (oid, typmod)
"""


def type_names(connection: Connection[Any], relations: Iterable[RelationMessage]) -> TypeNames:
    """The names of all types that the relations' columns have."""
    types = sorted(
        {(column.type_oid, column.typmod) for each in relations for column in each.columns}
    )
    parameters = {"oids": [oid for oid, _ in types], "typmods": [typmod for _, typmod in types]}
    with translated():
        answer = connection.execute(TYPE_NAMES, parameters)
        return {(oid, typmod): name for oid, typmod, name in answer}


def differences(
    relation: RelationMessage, columns: Sequence[SourceColumn], names: TypeNames
) -> tuple[str, ...]:
    """A sentence for each captured column that the relation lacks or has with another type."""
    present = {column.name: column for column in relation.columns}
    found = []
    for column in columns:
        there = present.get(column.name)
        if there is None:
            found.append(f'Column "{column.name}" is not in the log.')
            continue
        declared = names.get((there.type_oid, there.typmod), "of an unknown type")
        if declared != column.declared:
            found.append(
                f'Column "{column.name}" is {declared} in the log instead of {column.declared}.'
            )
    return tuple(found)
