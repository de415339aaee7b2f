"""PostgreSQL's SQL to a plan."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from sqlglot import exp

from headrace.algebra.scalar import Column, Scalar
from headrace.errors import UserError
from headrace.functions import cast
from headrace.functions.decimals import QUOTIENT
from headrace.lower import as_matches, lower
from headrace.plan.extent import depth
from headrace.plan.keys import smallest_key
from headrace.plan.operators import Operator, Project
from headrace.plan.passes import improve
from headrace.query.block import Block
from headrace.query.clauses import check_clauses
from headrace.query.context import Context, nested_too_deeply
from headrace.query.expressions import Expressions
from headrace.query.guards import check_precedence
from headrace.query.identifiers import ColumnIds, table_name
from headrace.query.limits import limited, without_parentheses
from headrace.query.ordering import TIES_NOTICE, breaks_ties, is_read
from headrace.query.parse import parse, reporting_internal_errors
from headrace.query.schema import UNORDERED_NOTICE, BoundTable, BoundView, Rules, Schema, following
from headrace.query.scope import Scope
from headrace.query.select import bind_select
from headrace.query.set_operations import Branches
from headrace.query.values import bind_values
from headrace.query.with_clause import defined_by_with, named_tables, with_defined
from headrace.types import Type


def bind_query(node: exp.Expr, context: Context) -> Block:
    """Return the query's plan.

    A query of WITH is bound wherever it is used, each time with new ids.
    """
    with_ = node.args.get("with_")
    return _bind(node, context if with_ is None else with_defined(with_, context))


def _bind(node: exp.Expr, context: Context) -> Block:
    match node:
        case exp.Select():
            return bind_select(node, context, bind_query)
        case exp.Subquery():
            return bind_query(without_parentheses(node), context)
        case exp.SetOperation():
            constants = Expressions(Scope((), ()), "LIMIT").bind
            return limited(node, _set_operation(node, context), constants, context.keys)
        case exp.Values():
            return bind_values(node, context, bind_query)
    raise AssertionError(f"check_clauses accepts no {node.key}")


def _set_operation(node: exp.SetOperation, context: Context) -> Block:
    """Return a chain of set operations, which is read from the left and may be long."""
    chain: list[exp.SetOperation] = [node]
    while isinstance(chain[-1].this, exp.SetOperation):
        chain.append(chain[-1].this)
    branches = Branches.of(bind_query(chain[-1].this, context))
    for link in reversed(chain):
        right = bind_query(link.args["expression"], context)
        branches = branches.followed(right, context.ids, link)
    return branches.block(context.ids)


ORDER_NOTICE = "ORDER BY is ignored: a table has no order. Order the rows when you read them."
NO_RULES = Rules()
MAXIMUM_DEPTH = 128
"""Operators above each other in a plan. Each costs a few of Python's thousand frames."""


@dataclass(frozen=True)
class BoundQuery:
    """A query as a plan.

    `written` is the plan as the text says it, `plan` the same lowered and after the passes. `names`
    are the output columns as PostgreSQL names them. `key` has output positions whose values are
    unique together, NULLs taken as equal: None if no such set is known, empty if there is at most
    one row. `notices` are sentences for the user.
    """

    plan: Operator
    written: Operator
    names: tuple[str, ...]
    key: tuple[int, ...] | None
    notices: tuple[str, ...]


@reporting_internal_errors()
def bind(
    text: str,
    schema: Schema,
    *,
    in_cycle: bool = False,
    rules: Rules = NO_RULES,
) -> BoundQuery:
    """Return the plan of a query over the tables of `schema`.

    Raise UserError where the query cannot be maintained.

    The query of a table in a cycle has EXCEPT and INTERSECT as joins, which a loop can maintain.
    """
    with following(rules) as binding:
        bound = _bound(text, schema, in_cycle=in_cycle)
    if not binding.ordered_by_value:
        return bound
    return replace(bound, notices=(*bound.notices, UNORDERED_NOTICE))


def _bound(text: str, schema: Schema, *, in_cycle: bool) -> BoundQuery:
    query = parse(text)
    check_clauses(query)
    check_precedence(query)
    recorded = _Recorded(schema)
    ids = ColumnIds()
    block = bind_query(query, Context(recorded, ids, keys=recorded.keys))
    _require_distinct(block.names)
    if not recorded.keys:
        hint = "Its result never changes: make an ordinary table of it."
        raise UserError("unsupported-query", "the query reads no table", hint=hint)
    written = _shown(block, ids)
    lowered = lower(as_matches(written, ids.computed) if in_cycle else written, ids.computed)
    if depth(lowered) > MAXIMUM_DEPTH:
        raise nested_too_deeply()
    ignored = any(
        node.args.get("order") is not None and not is_read(node.args["order"])
        for node in query.find_all(exp.Query)
    )
    notices = ((ORDER_NOTICE, ignored), (TIES_NOTICE, breaks_ties(written)))
    return BoundQuery(
        plan=improve(lowered),
        written=written,
        names=block.names,
        key=smallest_key(lowered, recorded.keys),
        notices=tuple(notice for notice, applies in notices if applies),
    )


@reporting_internal_errors()
def bind_columns(
    text: str, schema: Schema, rules: Rules = NO_RULES
) -> tuple[tuple[str, Type], ...]:
    """Return names and types of a query's columns, also where it reads no table."""
    ids = ColumnIds()
    with following(rules):
        block = bind_query(parse(text), Context(schema, ids))
        types = [column.type for column in _shown(block, ids).columns]
    return tuple(zip(block.names, types, strict=True))


def _shown(block: Block, ids: ColumnIds) -> Operator:
    """Return the plan with its quotients cast: they are computed with more digits than shown."""
    if not block.quotients:
        return block.plan
    outputs: list[tuple[Column, Scalar]] = []
    for name, column in zip(block.names, block.plan.columns, strict=True):
        if column in block.quotients:
            outputs.append((ids.computed(name, QUOTIENT), cast(column, QUOTIENT)))
        else:
            outputs.append((column, column))
    return Project(block.plan, tuple(outputs))


class _Recorded:
    """A schema that remembers the keys of the tables it was asked for."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self.keys: dict[str, tuple[frozenset[str], ...]] = {}

    def resolve(self, schema: str | None, name: str) -> BoundTable | BoundView | None:
        table = self._schema.resolve(schema, name)
        if isinstance(table, BoundTable):
            physical = {column.name: column.physical for column in table.columns}
            self.keys[table.relation] = tuple(
                frozenset(physical[part] for part in key) for key in table.keys
            )
        return table


def _require_distinct(names: tuple[str, ...]) -> None:
    """Refuse a repeated name, which PostgreSQL allows in a query, but not in a table."""
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise UserError(
            "invalid-query",
            f'column "{name}" specified more than once',
            hint="Give the columns different names with AS.",
        )


@reporting_internal_errors()
def table_names(text: str, home: str | None = None) -> tuple[tuple[str | None, str], ...]:
    """Return schema and name of every table that the query reads, each once.

    Names that WITH defines are left out where they are visible, and so are the tables of a query of
    WITH that is not used. A schema has the name of its database before it where the query says so,
    unless that is `home`.
    """
    names: dict[tuple[str | None, str], None] = {}
    visited_ids: set[int] = set()
    waiting: list[exp.Expr] = [parse(text)]
    while waiting:
        part = waiting.pop()
        for table in named_tables(part):
            if _stands_in_with(table, part):
                continue
            defined = defined_by_with(table)
            if defined is None:
                place, name = table_name(table)
                if place is not None and table.args.get("catalog") is not None:
                    place = place.removeprefix(f"{home}.")
                names[place, name] = None
            elif id(defined) not in visited_ids:
                visited_ids.add(id(defined))
                waiting.append(defined.this)
    return tuple(names)


def _stands_in_with(node: exp.Expr, part: exp.Expr) -> bool:
    """Return whether the node is inside a definition of WITH that is itself inside the part."""
    while node is not part and node.parent is not None:
        node = node.parent
        if isinstance(node, exp.CTE):
            return True
    return False
