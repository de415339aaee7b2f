"""An operator is whole: class, file, rule, description, evaluation, rendering, page, example."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from docs.generators.operators import EXAMPLES, Example, inputs, page_of, read
from headrace.delta.differentiate import Differentiation
from headrace.plan import operators
from headrace.plan.describe import describe
from headrace.plan.evaluate import Bag, evaluate, net
from headrace.plan.operators import OPERATORS, Aggregate, Operator, Recursive
from headrace.render import render
from headrace.render.inputs import input_name
from headrace.render.native import render_native
from headrace.spark.run import Input, Runner
from headrace.spark.session import Spark
from tests.docs.pages import DOCS, titles

# Stateful operators have their rule in a stage; Net and Restrict are put into finished deltas.
WITHOUT_DELTA = {
    "Accumulate",
    "Aggregate",
    "Merge",
    "Net",
    "Part",
    "Recursive",
    "OuterSemiAntiJoinDelta",
    "Restrict",
    "Top",
    "TopMerge",
    "Unseen",
    "Window",
}

each = pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.operator.__name__)


def names(classes: tuple[type[Operator], ...]) -> list[str]:
    return [one.__name__ for one in classes]


def subclasses() -> set[str]:
    """Every operator that is defined in a file of the folder."""
    return {
        name
        for name, value in vars(operators).items()
        if isinstance(value, type) and issubclass(value, Operator) and value is not Operator
    }


def test_the_same_names_everywhere() -> None:
    assert set(names(OPERATORS)) == subclasses()
    assert names(tuple(example.operator for example in EXAMPLES)) == names(OPERATORS)
    pages = {page.relative_to(DOCS).as_posix() for page in (DOCS / "operators").glob("*.md")}
    assert pages == {page_of(operator) for operator in OPERATORS}
    files = {Path(operator.__module__.replace(".", "/")).name for operator in OPERATORS}
    folder = Path(operators.__file__).parent
    assert files == {path.stem for path in folder.glob("*.py")} - {"__init__", "operator"}


@each
def test_the_page_has_its_parts(example: Example) -> None:
    page = DOCS / page_of(example.operator)
    assert titles(page, 1) == [example.operator.__name__]
    assert titles(page, 2) == ["Example", "Rule", "Spark SQL", "Limits"]


@each
def test_the_example_shows_the_operator(example: Example) -> None:
    assert type(example.plan) is example.operator


@each
def test_the_operator_is_described_and_evaluated(example: Example) -> None:
    assert example.operator.__name__ in describe(example.plan).splitlines()[0]
    assert all(len(row) == len(example.plan.columns) for row in evaluate(example.plan, read))


@each
def test_the_operator_is_rendered_for_deltas_or_as_a_query(example: Example) -> None:
    if isinstance(example.plan, Aggregate):
        with pytest.raises(TypeError, match="Aggregate"):
            render(example.plan)
        assert render_native(example.plan, tuple(c.id for c in example.plan.columns))
    elif isinstance(example.plan, Recursive):
        with pytest.raises(TypeError, match="Recursive"):
            render(example.plan)
        assert render(example.shown)
    else:
        assert render(example.plan)


@each
def test_the_operator_has_a_rule_or_says_that_it_has_none(example: Example) -> None:
    delta = Differentiation(frozenset())
    if example.operator.__name__ in WITHOUT_DELTA:
        with pytest.raises(TypeError):
            example.plan.delta(delta)
        assert not example.changes
    else:
        assert example.plan.delta(delta).columns == example.plan.columns


class Unknown(Operator):
    """An operator that nobody has heard of."""

    columns = ()
    children = ()

    def with_children(self, *_: Operator) -> Operator:
        return self


@pytest.mark.parametrize(
    "act", [describe, render, lambda plan: evaluate(plan, read), lambda p: render_native(p, ())]
)
def test_an_unknown_operator_is_refused_by_name(act: Callable[[Operator], object]) -> None:
    with pytest.raises(TypeError, match="Unknown"):
        act(Unknown())


def table(bag: Bag, schema: pa.Schema) -> pa.Table:
    rows = [(weight, *row) for row, weight in bag.items()]
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema)


@pytest.mark.spark
@each
def test_spark_gives_what_the_page_shows(example: Example, runner: Runner) -> None:
    given = []
    for scan in inputs(example.shown):
        fields = [("_weight", pa.int64()), *((p, c.type.arrow) for p, c in scan.fields)]
        schema = pa.schema(fields)
        name = input_name(scan.relation, scan.version)
        given.append(Input(name, schema, rows=table(read(scan), schema)))
    result = runner.collect(example.sql, given)
    assert isinstance(result, pa.Table)
    found: Bag = Counter()
    for row in zip(*(column.to_pylist() for column in result.columns), strict=True):
        weight, *values = (1, *row) if isinstance(example.plan, Aggregate) else row
        found[tuple(values)] += weight
    assert net(found) == net(evaluate(example.shown, read))


@pytest.fixture(scope="module")
def runner(spark: object) -> Runner:
    with Spark.open(spark) as opened:
        made = Runner(opened)
        yield made
        made.close()
