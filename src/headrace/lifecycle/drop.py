"""Drop stream tables, and take down sources that no stream table reads any more."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from headrace.capture.setup import tear_down
from headrace.catalog import Change, Transaction
from headrace.catalog.records import StreamTable
from headrace.engine import Engine
from headrace.engine.steps import DropTables, ForgetSource, TearDownCapture
from headrace.errors import HeadraceError, UserError
from headrace.graph import downstream
from headrace.graph.components import cycles
from headrace.ingest.unfollow import unfollow
from headrace.lifecycle.logs import drop_unowned_logs
from headrace.publish.reindex import tidy
from headrace.publish.served import drop_served
from headrace.refresh.refresh import require_table


def drop(engine: Engine, schema: str, name: str, *, cascade: bool = False) -> None:
    """Remove the stream table, and with `cascade` all that read it; otherwise they keep it.

    Views of users on a served table are named and keep it in any case.
    """
    with engine.writing() as lease:
        state = engine.catalog.state()
        table = require_table(state, schema, name)
        dependents = downstream(state.stream_tables, table.relation)
        readers = tuple(item for item in dependents if item.relation != table.relation)
        if readers and not cascade:
            raise _needed(table, readers, cycles(state.stream_tables))
        going = (*reversed(readers), table)

        def drop_all(transaction: Transaction) -> None:
            for table in going:
                drop_served(transaction, table)

        with engine.step(DropTables(tuple(table.relation for table in going))):
            engine.catalog.commit(Change(remove=going), fence=lease.fence, apply=drop_all)
        remove_idle_sources(engine, lease.fence)


def _needed(
    table: StreamTable, readers: Sequence[StreamTable], cycle_of: Mapping[str, frozenset[str]]
) -> UserError:
    """Return the error of a table that others read; members of its cycle go only together."""
    own = cycle_of.get(table.relation, frozenset())
    members = [reader for reader in readers if reader.relation in own]
    hint = "Drop them first, or drop with cascade."
    if members:
        hint = f"Drop with cascade, or first alter {_listed(members)} to open the cycle."
    return UserError(
        "has-dependents",
        f"other stream tables read {table.schema}.{table.name}",
        detail=f"They are {_listed(readers)}."
        + (f" It is in a cycle with {_listed(members)}." if members else ""),
        hint=hint,
    )


def _listed(tables: Sequence[StreamTable]) -> str:
    return ", ".join(f"{table.schema}.{table.name}" for table in tables)


logger = logging.getLogger(__name__)


def remove_idle_sources(engine: Engine, fence: int, *, patient: bool = True) -> None:
    """Take down every source without readers, and drop all logs without an owner.

    Repeating it after a crash finishes the work. A source that cannot go now, because others hold
    its table or a right is missing, stays recorded until this is done again; that is logged and not
    raised, because what made the source idle is done already.
    """
    state = engine.catalog.state()
    for source in state.sources:
        if state.readers(source.relation):
            continue
        try:
            database = engine.source_database(state.database(source.database))
            if state.database(source.database).following is not None:
                unfollow(engine, engine.catalog.state(), source.database, [source.oid], fence)
            with engine.step(TearDownCapture(source.relation)):
                tear_down(database, source.oid, patient=patient)
        except HeadraceError as error:
            logger.warning(
                "capture could not be taken away",
                extra={
                    "source": state.called(source),
                    "code": error.code,
                    "error": error.message,
                },
            )
            continue
        with engine.step(ForgetSource(source.relation)):
            engine.catalog.commit(Change(remove=(source,)), fence=fence)
    drop_unowned_logs(engine, fence)


def finish_removals(engine: Engine, fence: int) -> None:
    """Finish interrupted removals during recovery, without waiting for locks."""
    tidy(engine.database, engine.catalog.state().stream_tables)
    remove_idle_sources(engine, fence, patient=False)
