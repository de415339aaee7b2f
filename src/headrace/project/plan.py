"""What applying a folder of statements would do to the existing stream tables, as data."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from headrace.catalog import State
from headrace.catalog.records import StreamTable
from headrace.errors import UserError
from headrace.lifecycle.cycle_members import Name, shown
from headrace.lifecycle.planned_table import TableRequest
from headrace.project.read import DefinedTable


class Act(StrEnum):
    """What happens to a stream table.

    REBUILD recomputes it, because its query or its partitions differ; FOLLOW does, because it
    reads one that is rebuilt. ALTER changes options in place. LEAVE is one that is not in the
    folder and stays.
    """

    CREATE = "create"
    REBUILD = "rebuild"
    FOLLOW = "follow"
    ALTER = "alter"
    DROP = "drop"
    LEAVE = "leave"
    UNCHANGED = "unchanged"


@dataclass(frozen=True)
class TableChange:
    """What happens to one stream table, and why.

    `options` are those that change, None back to the default; `rebuilt_readers`
    read a rebuilt one and are recomputed with it; `place` is where the folder has it.
    """

    act: Act
    name: Name
    reason: str
    options: Mapping[str, Any] = field(default_factory=dict)
    rebuilt_readers: tuple[str, ...] = ()
    place: str | None = None

    @property
    def table(self) -> str:
        return shown(self.name)


@dataclass(frozen=True)
class ProjectPlan:
    """The changes, in the order of the names, and what they were found from.

    `definitions` and `catalog` are fingerprints of the folder and of the stream tables: once they
    differ, the plan is stale. `notices` name options without effect of tables that are created,
    rebuilt or altered.
    """

    folder: str
    prune: bool
    definitions: str
    catalog: str
    changes: tuple[TableChange, ...]
    notices: tuple[str, ...] = ()

    @property
    def nothing_to_do(self) -> bool:
        return all(change.act in (Act.UNCHANGED, Act.LEAVE) for change in self.changes)

    @property
    def counts(self) -> dict[Act, int]:
        """The number of tables of each act, without acts that have none."""
        counted = Counter(change.act for change in self.changes)
        return {act: counted[act] for act in Act if counted[act]}

    def of(self, *acts: Act) -> tuple[TableChange, ...]:
        return tuple(change for change in self.changes if change.act in acts)

    def __str__(self) -> str:
        rows = [(change.act.value, change.table, change.reason) for change in self.changes]
        act, table = (max((len(row[n]) for row in rows), default=0) for n in (0, 1))
        lines = [f"{row[0]:{act}}  {row[1]:{table}}  {row[2]}" for row in rows]
        return "\n".join([*lines, *(f"notice: {notice}" for notice in self.notices)])


def folder_fingerprint(definitions: Sequence[DefinedTable]) -> str:
    """Return a fingerprint of what a folder requests, wherever in its files it is."""
    return _fingerprint(
        [
            [
                *(*definition.name, *_requested(definition.request)),
                sorted(definition.request.options.items()),
                definition.request.initialize,
            ]
            for definition in sorted(definitions, key=lambda definition: definition.name)
        ]
    )


def catalog_fingerprint(state: State) -> str:
    """Return a fingerprint of stream tables, their options and whom they read."""
    return _fingerprint(
        [
            [
                *(table.schema, table.name, *_requested(table)),
                sorted(table.options.items()),
                sorted(inputs_of(state, table)),
            ]
            for table in state.stream_tables
        ]
    )


def _requested(table: TableRequest | StreamTable) -> tuple[str | None, ...]:
    return bare(table.query), table.schedule, table.refresh_mode.value


def bare(query: str) -> str:
    """Return the text by which a query is compared with another."""
    return query.strip()


def inputs_of(state: State, table: StreamTable) -> frozenset[Name]:
    """Return the stream tables that a table reads."""
    origins = (state.origin(relation) for relation in table.inputs)
    return frozenset(
        (origin.schema, origin.name) for origin in origins if isinstance(origin, StreamTable)
    )


def refuse_stale(expected: ProjectPlan, current: ProjectPlan) -> None:
    """Refuse a plan whose folder or stream tables have changed since."""
    changed = []
    if expected.definitions != current.definitions:
        changed.append("The folder has changed since.")
    if expected.catalog != current.catalog:
        changed.append("Stream tables were created, altered or dropped since.")
    if changed:
        raise UserError(
            "stale-plan",
            "the plan is stale",
            detail=" ".join(changed),
            hint="Plan again, and check the new plan.",
        )


def _fingerprint(content: Any) -> str:
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
