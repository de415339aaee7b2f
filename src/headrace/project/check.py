"""What is wrong with the queries of a folder, told with the place where it stands."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.catalog import State
from headrace.engine import Engine
from headrace.errors import HeadraceError
from headrace.graph.dependencies import in_order
from headrace.lifecycle.create import ALTERED
from headrace.lifecycle.cycle_members import Name
from headrace.lifecycle.planned_table import FIRST
from headrace.lifecycle.planning import plan
from headrace.lifecycle.table_spec import TableSpec
from headrace.project.difference import Reads
from headrace.project.read import DefinedTable


def check_queries(
    engine: Engine, state: State, making: Sequence[DefinedTable], reads: Reads
) -> None:
    """Everything that can be known of tables that shall be made together, or UserError."""
    if not making:
        return
    try:
        _plan(engine, state, making)
    except HeadraceError as error:
        found = _where(engine, state, making, reads, error)
        if found is not None:
            where = f"In {found.place}."
            error.detail = " ".join(part for part in (error.detail, where) if part)
        raise


def _plan(engine: Engine, state: State, making: Sequence[DefinedTable]) -> None:
    wishes = []
    for one in making:
        old = state.stream_table(*one.name)
        wishes.append(TableSpec(FIRST if old is None else ALTERED, one.request, old))
    plan(engine, state, wishes)


def _where(
    engine: Engine, state: State, making: Sequence[DefinedTable], reads: Reads, error: HeadraceError
) -> DefinedTable | None:
    """The first table that fails likewise if only it is made, and what it rests on."""
    wanted = {one.name: one for one in making}
    for name in in_order({name: reads[name] & wanted.keys() for name in wanted}):
        try:
            _plan(engine, state, [wanted[one] for one in _below(reads, name) if one in wanted])
        except HeadraceError as second:
            if (second.code, second.message) == (error.code, error.message):
                return wanted[name]
    return None


def _below(reads: Reads, name: Name) -> list[Name]:
    """A table and all that it rests on."""
    found = [name]
    for one in found:
        found += [read for read in sorted(reads.get(one, ())) if read not in found]
    return found
