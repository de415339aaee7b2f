"""Create logs and drop logs without an owner, so that none is left behind.

A relation is recorded before its log is created, and forgotten after the log is removed. The next
writer removes the log of a relation that belongs to no source and no stream table.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import pyarrow as pa

from headrace.catalog import Change, State, new_relation_id
from headrace.catalog.records import Relation, Source
from headrace.engine import Engine
from headrace.engine.steps import CreateLog, DropLog, ForgetLogs, RecordLogs
from headrace.errors import HeadraceError
from headrace.plan.stage import Stage
from headrace.relations.compaction import Merges
from headrace.relations.rows import arrow_schema
from headrace.store import Arrangement

logger = logging.getLogger(__name__)


def create_logs(
    engine: Engine, logs: Mapping[Relation, Arrangement], fence: int
) -> tuple[Relation, ...]:
    """Create empty logs, each with its arrangement, and return the recorded relations.

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
    """Remove the logs of relations without an owner, then the relations.

    A log that cannot be removed now is logged and left to the next writer, as is one that is being
    merged.
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
                "could not remove log",
                extra={"relation": relation.id, "code": error.code, "error": error.message},
            )
        else:
            gone.append(relation)
    if gone:
        with engine.step(ForgetLogs(tuple(relation.id for relation in gone))):
            engine.catalog.commit(Change(remove=tuple(gone)), fence=fence)


def unowned(state: State) -> tuple[Relation, ...]:
    """Return relations of no source and no stream table.

    The name of hidden ones begins with the owner's.
    """
    length = len(new_relation_id())
    return tuple(
        relation for relation in state.relations if state.origin(relation.id[:length]) is None
    )


def order_of_source(source: Source, relation: Relation) -> tuple[str, ...]:
    """Return a source's primary key, else its first unique key, else its first column."""
    stored = {name for name, _ in relation.columns}
    keys = (tuple(f"c{number}" for number in key) for key in source.keys)
    key = next((key for key in keys if stored.issuperset(key)), relation.visible[:1])
    return _sorted(relation, key)


def order_of_stage(stage: Stage, relation: Relation) -> tuple[str, ...]:
    """Return the key of the stage's groups or partitions, else its first visible column.

    What others see of a key has its order, too, and so the same row groups.
    """
    keys = tuple(f"k{number}" for number in range(1, 1 + len(stage.keys)))
    return _sorted(relation, keys or relation.visible[:1])


def _sorted(relation: Relation, order: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns that can be sorted by: lists cannot."""
    types = dict(relation.columns)
    return tuple(name for name in order if not pa.types.is_list(types[name].arrow))
