"""PostgreSQL's SQL to a plan."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from sqlglot import exp

from headrace.errors import UserError
from headrace.plan.keys import smallest_key
from headrace.plan.operators import Operator
from headrace.plan.passes import improve
from headrace.query.clauses import check_clauses
from headrace.query.identifiers import name_of, table_name
from headrace.query.ids import ColumnIds
from headrace.query.parse import parse
from headrace.query.precedence import check_precedence
from headrace.query.schema import BoundTable, Schema
from headrace.query.select import bind_select

ORDER_NOTICE = "ORDER BY is ignored: a table has no order. Order the rows when you read them."


@dataclass(frozen=True)
class BoundQuery:
    """A query as a plan.

    `written` is the plan as the text says it, `plan` the same after the passes. `names` are the
    output columns as PostgreSQL names them. `key` has output positions whose values are unique
    together, NULLs taken as equal: None if no such set is known, empty if there is at most one
    row. `notices` are sentences for the user.
    """

    plan: Operator
    written: Operator
    names: tuple[str, ...]
    key: tuple[int, ...] | None
    notices: tuple[str, ...]


def bind(text: str, schema: Schema) -> BoundQuery:
    """The plan of a query over the tables of `schema`; UserError where it cannot be maintained."""
    query = parse(text)
    check_clauses(query)
    check_precedence(query)
    assert isinstance(query, exp.Select), "check_clauses accepts no other query"
    recorded = _Recorded(schema)
    block = bind_select(query, recorded, ColumnIds())
    _require_distinct(block.names)
    plan = improve(block.plan)
    return BoundQuery(
        plan=plan,
        written=block.plan,
        names=block.names,
        key=smallest_key(block.plan, recorded.keys),
        notices=(ORDER_NOTICE,) if query.args.get("order") is not None else (),
    )


class _Recorded:
    """A schema that remembers the keys of the tables it was asked for."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self.keys: dict[str, tuple[frozenset[str], ...]] = {}

    def resolve(self, schema: str | None, name: str) -> BoundTable | None:
        table = self._schema.resolve(schema, name)
        if table is not None:
            physical = {column.name: column.physical for column in table.columns}
            self.keys[table.relation] = tuple(
                frozenset(physical[part] for part in key) for key in table.keys
            )
        return table


def _require_distinct(names: tuple[str, ...]) -> None:
    """PostgreSQL lets a query repeat a name, but not a table."""
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise UserError(
            "invalid-query",
            f'column "{name}" specified more than once',
            hint="Give the columns different names with AS.",
        )


def table_names(text: str) -> tuple[tuple[str | None, str], ...]:
    """Schema and name of every table that the query reads, in the text's order, each once.

    Names that WITH defines are left out where they are visible.
    """
    names: dict[tuple[str | None, str], None] = {}
    for table in parse(text).find_all(exp.Table, bfs=False):
        if isinstance(table.this, exp.Identifier) and not _is_defined_by_with(table):
            names[table_name(table)] = None
    return tuple(names)


def _is_defined_by_with(table: exp.Table) -> bool:
    schema, name = table_name(table)
    inside: exp.Expr = table
    while schema is None and inside.parent is not None:
        outer = inside.parent
        with_ = outer if isinstance(outer, exp.With) else outer.args.get("with_")
        if isinstance(with_, exp.With) and with_ is not inside:
            defined = list(with_.expressions)
            # A definition sees the ones before it, and itself only if the WITH is recursive.
            if inside in defined and not with_.args.get("recursive"):
                defined = defined[: defined.index(inside)]
            if any(name_of(cte.args["alias"].this) == name for cte in defined):
                return True
        inside = outer
    return False
