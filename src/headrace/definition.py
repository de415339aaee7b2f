"""What a stream table is once its query is bound: a plan and its stages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from headrace.catalog.records import Relation, Source, StreamTable
from headrace.catalog.state import State
from headrace.plan.operators import Filter, Operator, Project, Scan
from headrace.plan.scalar import Column
from headrace.plan.stages import Stage, cut_stages, stage_types
from headrace.query import BoundColumn, BoundQuery, BoundTable, bind
from headrace.store import Pin
from headrace.types import BOOLEAN


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

    @property
    def key(self) -> tuple[int, ...]:
        """Output positions that are unique together: the group's key, if all of it is shown.

        It rests on the query alone, never on a constraint that a user may drop.
        """
        if self.final.state is None:
            return ()
        shown = {scalar: place for place, (_, scalar) in enumerate(self.final.outputs)}
        places = [shown.get(column) for column in self.final.state.key_columns]
        return tuple(place for place in places if place is not None) if None not in places else ()


Input = Source | StreamTable


@dataclass(frozen=True)
class InputSchema:
    """What table names mean in a query: its inputs, found along a search path.

    `tables` are what the binder sees of them. `conditions` gives, for each input whose relation
    also holds groups that its HAVING hides, the column that tells them apart.
    """

    tables: tuple[BoundTable, ...]
    conditions: frozenset[tuple[str, str]]
    search_path: tuple[str, ...]

    @staticmethod
    def of(inputs: Iterable[Input], state: State, search_path: tuple[str, ...]) -> InputSchema:
        inputs = tuple(inputs)
        conditions = {
            (one.relation, condition)
            for one in inputs
            if isinstance(one, StreamTable)
            and (condition := state.relation(one.relation).condition) is not None
        }
        return InputSchema(tuple(map(bound_table, inputs)), frozenset(conditions), search_path)

    def resolve(self, schema: str | None, name: str) -> BoundTable | None:
        for candidate in (schema,) if schema is not None else self.search_path:
            for table in self.tables:
                if (table.schema, table.name) == (candidate, name):
                    return table
        return None


def bound_table(origin: Input) -> BoundTable:
    """An input as the binder sees it: its columns as they were when it was captured."""
    if isinstance(origin, StreamTable):
        columns = tuple(
            BoundColumn(column.name, f"c{number}", column.type, column.served)
            for number, column in enumerate(origin.columns, 1)
        )
        keys = (origin.key,) if origin.key else ()
        return BoundTable(origin.relation, origin.schema, origin.name, columns, keys)
    return _bound_source(origin)


def _bound_source(source: Source) -> BoundTable:
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
def _defined(relation: str, query: str, schema: InputSchema) -> Definition:
    return new_definition(relation, bind(query, schema), schema)


def define(table: StreamTable, state: State) -> Definition:
    """The definition of a table that exists, bound to its inputs as they were captured."""
    origins = (state.origin(relation) for relation in table.inputs)
    inputs = [origin for origin in origins if origin is not None]
    schema = InputSchema.of(inputs, state, table.search_path)
    return _defined(table.relation, table.query, schema)


def new_definition(relation: str, bound: BoundQuery, schema: InputSchema) -> Definition:
    """The definition of a table about to be created."""
    plan = _without_hidden(bound.plan, dict(schema.conditions))
    return Definition(relation, plan, cut_stages(plan, relation))


def _without_hidden(plan: Operator, conditions: dict[str, str]) -> Operator:
    """The plan reading only those groups of other stream tables that their HAVING shows."""
    if not isinstance(plan, Scan):
        return plan.with_children(*(_without_hidden(c, conditions) for c in plan.children))
    condition = conditions.get(plan.relation)
    if condition is None:
        return plan
    shown = Column(f"{plan.columns[0].id}_shown" if plan.columns else "shown", BOOLEAN)
    whole = replace(plan, fields=(*plan.fields, (condition, shown)))
    return Project(Filter(whole, shown), tuple((column, column) for column in plan.columns))


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
