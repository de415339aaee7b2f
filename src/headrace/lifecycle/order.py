"""By which columns the files of a relation are sorted: those that it is mostly looked up by."""

from __future__ import annotations

import pyarrow as pa

from headrace.catalog.records import Relation, Source
from headrace.plan.stage import Stage


def order_of_source(source: Source, relation: Relation) -> tuple[str, ...]:
    """A source's primary key, or the first unique one; without any its first column."""
    stored = {name for name, _ in relation.columns}
    keys = (tuple(f"c{number}" for number in key) for key in source.keys)
    key = next((key for key in keys if stored.issuperset(key)), relation.visible[:1])
    return _sorted(relation, key)


def order_of_stage(stage: Stage, relation: Relation) -> tuple[str, ...]:
    """The key of the stage's groups or partitions; without any the first column that is seen.

    What others see of a key has its order, too, and so the same row groups.
    """
    keys = tuple(f"k{number}" for number in range(1, 1 + len(stage.keys)))
    return _sorted(relation, keys or relation.visible[:1])


def _sorted(relation: Relation, order: tuple[str, ...]) -> tuple[str, ...]:
    """The columns that values can be sorted by: lists cannot."""
    types = dict(relation.columns)
    return tuple(name for name in order if not pa.types.is_list(types[name].arrow))
