"""What a stream table is once its query is bound: a plan and its stages."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from headrace.catalog.records import Relation, Source, StreamTable
from headrace.catalog.state import State
from headrace.plan.operators import Operator, Scan
from headrace.plan.stages import Stage, cut_stages, stage_types
from headrace.query import BoundColumn, BoundQuery, BoundTable, bind
from headrace.store import Pin


@dataclass(frozen=True, eq=False)
class Definition:
    """A stream table's query as a plan over relations, and the stages that maintain it.

    Definitions are remembered and compared by identity, so that what is made of one can be
    remembered too.
    """

    relation: str
    plan: Operator
    stages: tuple[Stage, ...]

    @property
    def final(self) -> Stage:
        return self.stages[-1]


@dataclass(frozen=True)
class SourceSchema:
    """What table names mean in a query: sources, found along a search path."""

    sources: tuple[Source, ...]
    search_path: tuple[str, ...]

    def resolve(self, schema: str | None, name: str) -> BoundTable | None:
        for candidate in (schema,) if schema is not None else self.search_path:
            for source in self.sources:
                if (source.schema, source.name) == (candidate, name):
                    return bound_table(source)
        return None


def bound_table(source: Source) -> BoundTable:
    """A source as the binder sees it: its columns as they were when it was captured."""
    by_number = {column.number: column.name for column in source.columns}
    return BoundTable(
        source.relation,
        source.schema,
        source.name,
        tuple(
            BoundColumn(column.name, column.physical, column.type, column.declared)
            for column in source.columns
        ),
        tuple(tuple(by_number[number] for number in key) for key in source.keys),
    )


@lru_cache(maxsize=1024)
def _defined(relation: str, query: str, schema: SourceSchema) -> Definition:
    return new_definition(relation, bind(query, schema))


def define(table: StreamTable, state: State) -> Definition:
    """The definition of a table that exists, bound to its sources as they were captured."""
    sources = tuple(source for source in state.sources if source.relation in table.inputs)
    return _defined(table.relation, table.query, SourceSchema(sources, table.search_path))


def new_definition(relation: str, bound: BoundQuery) -> Definition:
    """The definition of a table about to be created."""
    return Definition(relation, bound.plan, cut_stages(bound.plan, relation))


def used_columns(table: StreamTable, state: State, relation: str) -> frozenset[str]:
    """The physical columns of an input that the table's query reads."""
    used: set[str] = set()

    def visit(node: Operator) -> None:
        if isinstance(node, Scan) and node.relation == relation:
            used.update(physical for physical, _ in node.fields)
        for child in node.children:
            visit(child)

    visit(define(table, state).plan)
    return frozenset(used)


def relation_of(stage: Stage, pin: Pin) -> Relation:
    """The relation that a stage writes."""
    condition = None if stage.condition is None else "v"
    visible = tuple(physical for physical, _ in stage.visible)
    return Relation(stage.relation, stage_types(stage), visible, pin, condition)
