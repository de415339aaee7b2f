"""Values, Unnest, Replicate, Part and Unseen as Spark SQL, over weighted or ordinary rows.

Rows computed by an expression are an array that Spark explodes. `weight` is the weight of the
selected rows, None where rows have none.

Unseen evaluates the derived rows once, and keeps them small: the known rows are a log, which may be
large and hold a row with weights of both signs, and are only streamed.

    once(derived)  left join  known      on all columns, NULLs equal
    grouped by all columns, of which the weights in known add up to 0 or less
"""

from __future__ import annotations

from sqlglot import exp

from headrace.algebra.scalar import Column
from headrace.functions.function import spark_binary, spark_cast, spark_function
from headrace.functions.spark import case, plus
from headrace.functions.tables import TABLE_FUNCTION_BY_NAME, field_name
from headrace.plan.operators import Part, Replicate, Unnest, Unseen, Values
from headrace.render.pieces import (
    WEIGHT,
    aliased,
    bigint,
    columns_named,
    joined,
    named,
    of_table,
    select_weighted,
    weighted,
)
from headrace.render.scalars import column, identifier, render_scalar
from headrace.types import BIGINT

ROWS = "_rows"
ITEM = "_item"
NUMBER = "_number"
NOTHING = "_nothing"


def values(plan: Values, weight: exp.Expression | None) -> exp.Select:
    """Return one row as a SELECT without FROM, several as an array of rows."""
    if len(plan.rows) == 1:
        cells = zip(map(render_scalar, plan.rows[0]), plan.columns, strict=True)
        return _select(weight, [named(spark_cast(cell, c.type), c) for cell, c in cells])
    arguments = [render_scalar(cell) for row in plan.rows for cell in row]
    types = tuple(c.type for c in plan.columns)
    if types:
        array = TABLE_FUNCTION_BY_NAME["rows"].spark(arguments, types, types)
    else:
        array = spark_function("array", *(bigint(1) for _ in plan.rows))
    select = _select(weight, _items(plan.columns))
    exploded = exp.Select(expressions=[aliased(spark_function("explode", array), ITEM)])
    return select.from_(exp.Subquery(this=exploded, alias=_alias(ROWS)), copy=False)


def unnest(plan: Unnest, child: exp.Expression, weight: exp.Expression | None) -> exp.Select:
    """Return the rows with a LATERAL VIEW of the function's array."""
    function = TABLE_FUNCTION_BY_NAME[plan.function]
    arguments = [render_scalar(argument) for argument in plan.arguments]
    types = [argument.type for argument in plan.arguments]
    array = function.spark(arguments, types, tuple(c.type for c in plan.outputs))
    select_list = [*columns_named(plan.child.columns), *_items(plan.outputs)]
    names = [ITEM]
    if plan.ordinality is not None:
        names = [NUMBER, ITEM]
        number = spark_cast(plus(of_table(ROWS, NUMBER), exp.Literal.number(1)), BIGINT)
        select_list.append(named(number, plan.ordinality))
    explode = "explode" if plan.ordinality is None else "posexplode"
    return (
        _select(weight, select_list)
        .from_(child, copy=False)
        .lateral(_exploded(spark_function(explode, array), names, outer=plan.keep), copy=False)
    )


def replicate(plan: Replicate, child: exp.Expression) -> exp.Select:
    """Return weighted rows with their weights multiplied."""
    weight = spark_binary(exp.Mul, column(WEIGHT), render_scalar(plan.times))
    return _select(weight, columns_named(plan.columns)).from_(child, copy=False)


def copied(plan: Replicate, child: exp.Expression) -> exp.Select:
    """Return ordinary rows, each as often as `times` says."""
    times = render_scalar(plan.times)
    some = exp.GT(this=times.copy(), expression=bigint(0))
    copies = case(some, spark_function("sequence", bigint(1), times), exp.Null())
    one_each = _exploded(spark_function("explode", copies), [ITEM], outer=False)
    return (
        _select(None, columns_named(plan.columns))
        .from_(child, copy=False)
        .lateral(one_each, copy=False)
    )


def _select(weight: exp.Expression | None, shown: list[exp.Expression]) -> exp.Select:
    """Return a SELECT of these columns; Spark needs one also where there are none."""
    if weight is not None:
        return exp.Select(expressions=[aliased(weight, WEIGHT), *shown])
    return exp.Select(expressions=shown or [aliased(bigint(1), NOTHING)])


def _items(columns: tuple[Column, ...]) -> list[exp.Expression]:
    """Return the columns of an exploded row; the row of one column is its value."""
    if len(columns) == 1:
        return [named(spark_cast(of_table(ROWS, ITEM), columns[0].type), columns[0])]
    return [named(spark_cast(_field(i), c.type), c) for i, c in enumerate(columns, 1)]


def _field(place: int) -> exp.Column:
    """Return a field of the exploded row, by its full name.

    Other rows may be exploded beside it.
    """
    return exp.Column(
        this=identifier(field_name(place)), table=identifier(ITEM), db=identifier(ROWS)
    )


def _exploded(generator: exp.Expression, names: list[str], *, outer: bool) -> exp.Lateral:
    alias = exp.TableAlias(this=identifier(ROWS), columns=[identifier(name) for name in names])
    return exp.Lateral(this=generator, view=True, outer=outer, alias=alias)


def _alias(name: str) -> exp.TableAlias:
    return exp.TableAlias(this=identifier(name))


Side = tuple[str, exp.Expression]
KNOWN = "_known"


def part(plan: Part, child: exp.Expression) -> exp.Select:
    """Return rows of one sign, their weights positive."""
    is_added = plan.sign == "added"
    weight = column(WEIGHT) if is_added else exp.Neg(this=column(WEIGHT))
    compare = exp.GT if is_added else exp.LT
    select = weighted(weight, *columns_named(plan.columns)).from_(child, copy=False)
    return select.where(compare(this=column(WEIGHT), expression=bigint(0)), copy=False)


def once(plan: Unseen, found: exp.Expression) -> exp.Select:
    """Return every row found, one time.

    Keys come out as Spark groups them: -0.0 as 0.0, one NaN.
    """
    query = weighted(bigint(1), *columns_named(plan.columns)).from_(found, copy=False)
    if plan.columns:
        query = query.group_by(*columns_named(plan.columns), copy=False)
    total = spark_function("sum", column(WEIGHT))
    return query.having(exp.GT(this=total, expression=bigint(0)), copy=False)


def beside_known(plan: Unseen, found: Side, known: Side) -> exp.Select:
    """Return rows found once, each beside the weights that it has among the known rows."""
    same = [
        exp.NullSafeEQ(this=of_table(found[0], a.id), expression=of_table(known[0], b.id))
        for a, b in zip(plan.found.columns, plan.known.columns, strict=True)
    ]
    select_list = [of_table(found[0], name) for name in (WEIGHT, *(c.id for c in plan.columns))]
    weight = aliased(of_table(known[0], WEIGHT), KNOWN)
    select = exp.Select(expressions=[*select_list, weight]).from_(found[1], copy=False)
    return joined(select, "left", known[1], exp.and_(*same) if same else exp.true())


def unseen(plan: Unseen, rows: exp.Expression) -> exp.Select:
    """Return the rows beside known weights that are not known."""
    total = spark_function("coalesce", spark_function("sum", column(KNOWN)), bigint(0))
    groups = [column(WEIGHT), *columns_named(plan.columns)]
    query = select_weighted(plan.columns).from_(rows, copy=False).group_by(*groups, copy=False)
    return query.having(exp.LTE(this=total, expression=bigint(0)), copy=False)
