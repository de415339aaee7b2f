"""Define a stream table by its bound query: a plan and its stages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from headrace.algebra.scalar import Column
from headrace.catalog.records import InputNames, Relation, Source, StreamTable, ViewRecord
from headrace.catalog.state import State
from headrace.delta.order_joins import connect_joins
from headrace.errors import NeedsReinit, UserError
from headrace.graph.components import cycles
from headrace.graph.edges import classify
from headrace.plan.loop import as_sets
from headrace.plan.operators import Filter, Operator, Project, Scan, Window
from headrace.plan.passes.prune_columns import prune_columns
from headrace.plan.stages import Stage, cut_stages, stage_types
from headrace.query import BoundColumn, BoundQuery, BoundTable, BoundView, bind
from headrace.query.bind import NO_RULES
from headrace.query.schema import Rules
from headrace.store import Pin
from headrace.types import BOOLEAN, Collation


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
        place_by_scalar = {scalar: place for place, (_, scalar) in enumerate(self.final.outputs)}
        places = [place_by_scalar.get(column) for column in self.final.state.key_columns]
        return tuple(place for place in places if place is not None) if None not in places else ()


Input = Source | StreamTable


@dataclass(frozen=True)
class InputSchema:
    """What table names mean in a query: its inputs and the views it reads, by search path.

    `tables` are what the binder sees of the inputs. `conditions` gives, for each input whose
    relation also holds groups that its HAVING hides, the column that marks them. `rules` are
    those that the query is bound by.
    """

    tables: tuple[BoundTable, ...]
    views: tuple[BoundView, ...]
    conditions: frozenset[tuple[str, str]]
    search_path: tuple[str, ...]
    rules: Rules = NO_RULES

    @staticmethod
    def of(
        inputs: Mapping[InputNames, Input],
        views: tuple[ViewRecord, ...],
        state: State,
        search_path: tuple[str, ...],
        rules: Rules,
    ) -> InputSchema:
        """Return the schema of inputs, each by what the query or its views see of it."""
        conditions = {
            (origin.relation, condition)
            for origin in inputs.values()
            if isinstance(origin, StreamTable)
            and (condition := state.relation(origin.relation).condition) is not None
        }
        return InputSchema(
            tuple(bound_table(origin, named) for named, origin in inputs.items()),
            tuple(BoundView(v.schema, v.name, v.text, v.columns) for v in views),
            frozenset(conditions),
            search_path,
            rules,
        )

    def resolve(self, schema: str | None, name: str) -> BoundTable | BoundView | None:
        # A table of the home database may be named with or without that database.
        places = self.search_path if schema is None else (schema, schema.partition(".")[2])
        for candidate in places:
            relations: tuple[BoundTable | BoundView, ...] = (*self.tables, *self.views)
            for item in relations:
                if (item.schema, item.name) == (candidate, name):
                    return item
        return None


def as_named(origin: Input) -> InputNames:
    """Return the own names of an input: its schema, its name and all of its columns."""
    return InputNames(origin.schema, origin.name, tuple(column.name for column in origin.columns))


def bound_table(origin: Input, named: InputNames) -> BoundTable:
    """Return an input as the binder sees it, with the columns of when the query was bound."""
    columns: dict[str, BoundColumn] = {}
    keys: tuple[tuple[str, ...], ...]
    if isinstance(origin, StreamTable):
        for number, output in enumerate(origin.columns, 1):
            columns[output.name] = BoundColumn(
                output.name, f"c{number}", output.type, output.served
            )
        keys = (origin.key,) if origin.key else ()
    else:
        for column in origin.columns:
            columns[column.name] = BoundColumn(
                column.name, column.physical, column.type, column.declared
            )
        by_number = {column.number: column.name for column in origin.columns}
        keys = tuple(tuple(by_number[number] for number in key) for key in origin.keys)
    visible_columns = tuple(columns[name] for name in named.columns if name in columns)
    visible_names = frozenset(column.name for column in visible_columns)
    return BoundTable(
        origin.relation,
        named.schema,
        named.name,
        visible_columns,
        tuple(key for key in keys if visible_names.issuperset(key)),
    )


@lru_cache(maxsize=1024)
def _defined(relation: str, query: str, schema: InputSchema, cycle: frozenset[str]) -> Definition:
    bound = bind(query, schema, in_cycle=bool(cycle), rules=schema.rules)
    return new_definition(relation, bound, schema, cycle)


def rules_of(collation: Collation, options: Mapping[str, Any]) -> Rules:
    """Return the rules by which the query of a table with these options is bound."""
    return Rules(collation, by_value=options.get("unspecified_order") == "by_value")


def schema_of(table: StreamTable, state: State) -> InputSchema:
    """Return what the query of a table that exists sees, as when it was bound."""
    inputs = inputs_of(table, state)
    rules = rules_of(table.default_collation, table.options)
    return InputSchema.of(inputs, table.views, state, table.search_path, rules)


def define(table: StreamTable, state: State) -> Definition:
    """Return the definition of a table that exists, bound to its inputs as they were captured."""
    schema = schema_of(table, state)
    cycle = cycles(state.stream_tables).get(table.relation, frozenset())
    return _defined(table.relation, table.query, schema, cycle)


def rebound(table: StreamTable, state: State) -> BoundQuery:
    """Return the query of a table that exists, bound as it was."""
    schema = schema_of(table, state)
    return bind(table.query, schema, rules=schema.rules)


def stored_edges(bound: BoundQuery) -> dict[str, tuple[str, ...]]:
    """Return how a query depends on each relation that it reads, as a stream table records it."""
    return {edge.relation: edge.operators for edge in classify(bound.written)}


def edges_of(table: StreamTable, state: State) -> Mapping[str, tuple[str, ...]]:
    """Return how a table that exists depends on what it reads.

    The query of a table without recorded edges is classified here. If the query cannot be bound any
    more, no edge counts as monotone.
    """
    if table.edges or table.is_uninitialized:
        return table.edges
    try:
        return stored_edges(rebound(table, state))
    except UserError:
        return dict.fromkeys(table.inputs, ("unknown",))


def follow(table: StreamTable, moved: Mapping[str, str]) -> StreamTable:
    """Return the table over relations that took the place of others.

    The table has taken in nothing of the new relations.
    """
    return replace(
        table,
        inputs=tuple(moved.get(relation, relation) for relation in table.inputs),
        names={moved.get(relation, relation): named for relation, named in table.names.items()},
        edges={
            moved.get(relation, relation): operators for relation, operators in table.edges.items()
        },
        frontier={
            moved.get(relation, relation): 0 if relation in moved else epoch
            for relation, epoch in table.frontier.items()
        },
    )


def inputs_of(table: StreamTable, state: State) -> dict[InputNames, Input]:
    """Return the inputs of a table that exists, by what its query sees of them."""
    origins = (state.origin(relation) for relation in table.inputs)
    return {
        table.names.get(origin.relation) or as_named(origin): origin
        for origin in origins
        if origin is not None
    }


def new_definition(
    relation: str,
    bound: BoundQuery,
    schema: InputSchema,
    cycle: frozenset[str] = frozenset(),
) -> Definition:
    """Return the definition of a table about to be created.

    `cycle` has the relations of all tables of the cycle that it is in, its own among them; the
    query is bound for that.
    """
    plan = connect_joins(as_sets(_without_hidden(bound.plan, dict(schema.conditions)), cycle))
    return Definition(relation, plan, cut_stages(plan, relation, cycle))


def _without_hidden(plan: Operator, conditions: dict[str, str]) -> Operator:
    """Return the plan reading only those groups of other stream tables that their HAVING shows."""
    if not isinstance(plan, Scan):
        return plan.with_children(*(_without_hidden(c, conditions) for c in plan.children))
    condition = conditions.get(plan.relation)
    if condition is None:
        return plan
    is_shown = Column(f"{plan.columns[0].id}_shown" if plan.columns else "shown", BOOLEAN)
    whole = replace(plan, fields=(*plan.fields, (condition, is_shown)))
    return Project(Filter(whole, is_shown), tuple((column, column) for column in plan.columns))


def used_columns(plan: Operator, relation: str) -> frozenset[str]:
    """Return the physical columns of a relation that a plan reads."""
    used: set[str] = set()

    def visit(node: Operator) -> None:
        if isinstance(node, Scan) and node.relation == relation:
            used.update(physical for physical, _ in node.fields)
        for child in node.children:
            visit(child)

    visit(plan)
    return frozenset(used)


def named_columns(plan: Operator, relation: str) -> frozenset[str]:
    """Return those of `used_columns` that decide more than which of two equal rows comes first."""

    def without_ties(node: Operator) -> Operator:
        node = node.with_children(*map(without_ties, node.children))
        if not isinstance(node, Window):
            return node
        return replace(node, calls=tuple(replace(call, ties=()) for call in node.calls))

    return used_columns(prune_columns(without_ties(plan)), relation)


def relation_of(stage: Stage, pin: Pin) -> Relation:
    """Return the relation that a stage writes."""
    condition = None if stage.condition_column is None else "v"
    visible = tuple(physical for physical, _ in stage.visible)
    return Relation(stage.relation, stage_types(stage), visible, pin, condition)


def require_compatible(definition: Definition, state: State) -> None:
    """Raise `state-incompatible` unless the stored relations are those that the stages use.

    Another version of Headrace may have cut the same query in other places, or in more of them:
    then relations of the same columns can hold other rows.
    """
    hidden = re.compile(re.escape(definition.relation) + r"h\d+")
    written = {stage.relation for stage in definition.stages}
    for relation in state.relations:
        if relation.id not in written and hidden.fullmatch(relation.id):
            raise _state_incompatible(relation.id)
    for stage in definition.stages:
        stored_relation = state.find(stage.relation)
        expected = [(name, type_.arrow) for name, type_ in stage_types(stage)]
        if (
            stored_relation is None
            or [(name, type_.arrow) for name, type_ in stored_relation.columns] != expected
        ):
            raise _state_incompatible(stage.relation)


def _state_incompatible(relation: str) -> NeedsReinit:
    return NeedsReinit(
        "state-incompatible",
        "stored state of the table is incompatible with this version of Headrace",
        detail=f"The relation is {relation}.",
        hint="Reinit the stream table: its state is recomputed, and its served rows stay.",
    )
