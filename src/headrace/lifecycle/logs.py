"""Logs come and go with a record of them, so that none is left behind.

A relation is recorded before its log is made, and forgotten after the log is removed. One that
belongs to no source and no stream table is not in use yet or not any more: whoever writes next
removes it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from headrace.catalog import Change, State, new_relation_id
from headrace.catalog.records import Relation
from headrace.engine import Engine
from headrace.engine.steps import CreateLog, DropLog, ForgetLogs, RecordLogs
from headrace.errors import HeadraceError
from headrace.relations.merges import Merges
from headrace.relations.rows import arrow_schema
from headrace.store import Arrangement

logger = logging.getLogger(__name__)


def create_logs(
    engine: Engine, logs: Mapping[Relation, Arrangement], fence: int
) -> tuple[Relation, ...]:
    """Make empty logs, each for files arranged in its way; the relations as they are recorded.

    Nobody reads or owns them yet.
    """
    relations = tuple(logs)
    engine.store.prepare()
    with engine.step(RecordLogs(tuple(relation.id for relation in relations))):
        engine.catalog.commit(Change(put=relations), fence=fence)
    for relation in relations:
        with engine.step(CreateLog(relation.id)):
            pin = engine.store.create(relation.id, arrow_schema(relation), logs[relation])
        assert pin == relation.pin, "a new log is at version 0, epoch 0"
    return relations


def drop_unowned_logs(engine: Engine, fence: int) -> None:
    """Remove the logs of relations that belong to nobody, and then the relations.

    One that cannot be removed now is told and left to whoever writes next, as is one into which a
    sum is being written.
    """
    gone = []
    for relation in unowned(engine.catalog.state()):
        if not engine.part(Merges).forget(relation.id):
            continue
        try:
            with engine.step(DropLog(relation.id)):
                engine.store.drop(relation.id)
        except HeadraceError as error:
            logger.warning(
                "log could not be removed",
                extra={"relation": relation.id, "code": error.code, "error": error.message},
            )
        else:
            gone.append(relation)
    if gone:
        with engine.step(ForgetLogs(tuple(relation.id for relation in gone))):
            engine.catalog.commit(Change(remove=tuple(gone)), fence=fence)


def unowned(state: State) -> tuple[Relation, ...]:
    """Relations of no source and no stream table; hidden ones are named after their table's."""
    length = len(new_relation_id())
    return tuple(one for one in state.relations if state.origin(one.id[:length]) is None)
