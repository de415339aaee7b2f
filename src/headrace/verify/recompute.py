"""Stream tables recomputed by Spark from their inputs' states, against their own relations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from sqlglot import exp

from headrace.catalog import State
from headrace.catalog.records import StreamTable
from headrace.delta.fixed_point import NotConverged
from headrace.engine import Engine
from headrace.graph.components import Group
from headrace.plan.operators import Operator, Scan
from headrace.relations.definition import Definition, define
from headrace.relations.input_reader import InputReader
from headrace.relations.recursion import endless, least_fixed_point, materialised, numbered
from headrace.render import PlanInput, inputs_of
from headrace.render.inputs import input_name
from headrace.render.native import render_difference
from headrace.spark.profiles import Profile
from headrace.spark.run import Input
from headrace.verify.comparison import MOST_DIFFERENCES, Comparison, compared
from headrace.verify.sample import Sample

# What was maintained round by round may have more levels than one refresh is allowed.
MOST_ROUNDS = 100_000


def recompute(
    engine: Engine, state: State, group: Group, samples: Mapping[str, Sample] | None = None
) -> Iterator[Comparison]:
    """Compare one table, or all of a cycle, which are their least fixed point together.

    With `samples`, by relation, only those tables are compared, in these parts of them.
    """
    reading = at(engine, state, *group)
    definitions = {table.relation: define(table, state) for table in group}
    try:
        queries = _queries(engine, definitions, reading)
    except NotConverged as error:
        raise endless(error, group, cycle=len(group) > 1) from error
    for table in group:
        sample = None if samples is None else samples.get(table.relation)
        if samples is not None and sample is None:
            continue
        stored = definitions[table.relation].final.shown()
        plan, inputs = queries[table.relation]
        names = tuple(column.name for column in table.columns)
        inputs = [*inputs, *(reading.input(plan_input) for plan_input in inputs_of(stored))]
        profile = _profile(reading, (*inputs_of(plan), *inputs_of(stored)), inputs)
        where = None if sample is None else _condition(sample)
        text = render_difference(plan, stored, names, where)
        difference = engine.runner.collect(text, inputs, profile=profile, limit=MOST_DIFFERENCES)
        label = f"recomputed {table.schema}.{table.name}"
        yield compared(label, difference, names, [c.type for c in table.columns])


def _condition(sample: Sample) -> Callable[[Sequence[exp.Expression]], exp.Expression]:
    return lambda columns: sample.spark(columns[sample.place])


def _profile(reading: InputReader, wanted: Iterable[PlanInput], inputs: Iterable[Input]) -> Profile:
    """Return the profile: one task where there is little to read."""
    rows_in_memory = {
        input_.name: input_.rows.num_rows for input_ in inputs if input_.rows is not None
    }
    logs = [plan_input for plan_input in wanted if plan_input.name not in rows_in_memory]
    return "tiny" if reading.is_small(logs, sum(rows_in_memory.values())) else "wide"


def at(engine: Engine, state: State, *tables: StreamTable) -> InputReader:
    """Return a reader of the inputs at the epochs of the tables, and of the tables as published."""
    upto = {name: epoch for table in tables for name, epoch in table.frontier.items()}
    upto |= {table.relation: table.epoch for table in tables}
    return InputReader(engine.store, state, {}, limit=0, upto=upto)


def _queries(
    engine: Engine, definitions: dict[str, Definition], reading: InputReader
) -> dict[str, tuple[Operator, list[Input]]]:
    """Return for every relation a query without recursion that gives its rows, and its inputs."""
    plans = {relation: definition.plan for relation, definition in definitions.items()}
    if not any(definition.final.cycle for definition in definitions.values()):
        return {
            relation: materialised(engine, plan, reading, MOST_ROUNDS)
            for relation, plan in plans.items()
        }
    queries: dict[str, tuple[Operator, list[Input]]] = {}
    for relation, rows in least_fixed_point(engine, plans, reading, MOST_ROUNDS).items():
        columns = plans[relation].columns
        scan = Scan(f"{relation}_recomputed", tuple(zip(numbered(columns), columns, strict=True)))
        name = input_name(scan.relation, scan.version)
        queries[relation] = scan, [Input(name, rows.schema, rows=rows)]
    return queries
