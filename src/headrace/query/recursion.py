"""A query of WITH RECURSIVE that names itself, as the operator Recursive.

Its first term decides the names and types of its columns before the second is bound: constants
without a type are text. What both have in common must be these types again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from headrace.algebra.scalar import outer_reads
from headrace.plan.operators import Operator, Project, Recursive
from headrace.query.block import Block
from headrace.query.coerce import settled
from headrace.query.context import Context, WorkingTable
from headrace.query.identifiers import ColumnIds, name_of
from headrace.query.refusal import refuse
from headrace.query.set_operations import Branches, Part
from headrace.query.with_clause import recursive_union, with_defined
from headrace.types import Type
from headrace.types.kinds import MAXIMUM_DIGITS

BindQuery = Callable[[exp.Expr, Context], Block]

_ROUNDS = 4
"""How often the second term is bound until the digits of numeric columns are found."""


def bind_recursive(cte: exp.CTE, variable: str, context: Context, bind: BindQuery) -> Block:
    """Return the query's plan; `variable` is the relation by which its second term reads it."""
    name = name_of(cte.args["alias"].this)
    union = recursive_union(cte)
    assert union is not None, "check_recursion refuses any other form"
    with_ = union.args.get("with_")
    if with_ is not None:
        context = with_defined(with_, context)
    base = bind(union.this, context)
    names = _names(cte, base)
    first = Branches.of(base)
    types = tuple(column.type for column in base.plan.columns)
    quotients = first.quotients
    for already in range(_ROUNDS):
        table = WorkingTable(variable, names, types, quotients)
        step = bind(union.args["expression"], context.defining(name, table))
        both = first.followed(step, context.ids, union)
        overall = tuple(settled(bound).type for bound in both.parts[0][1])
        _require_same(name, base, overall, cte)
        if overall == types and both.quotients == quotients:
            return _block(table, both, context.ids, cte)
        # PostgreSQL's numeric has as many digits as a value needs: the column must have room.
        types = tuple(map(_roomy, overall)) if already else overall
        quotients = both.quotients
    raise refuse(
        "unsupported-query",
        f'recursive query "{name}" computes more digits with every level',
        cte,
        "Cast the numeric column to the same numeric(p, s) in both terms.",
    )


def _block(table: WorkingTable, both: Branches, ids: ColumnIds, cte: exp.CTE) -> Block:
    base, step = (_projected(part, table.names, ids) for part in both.parts)
    if any(True for part in (base, step) for _ in outer_reads(part)):
        message = "a recursive query that reads the row around it is not maintained"
        raise refuse("unsupported-query", message, cte, "Carry the value as one of its columns.")
    named = zip(table.names, table.types, strict=True)
    outputs = tuple(ids.computed(name, type_) for name, type_ in named)
    plan = Recursive(table.variable, outputs, base, step, both.once)
    return Block(plan, table.names, frozenset(outputs[i] for i in table.quotients))


def _projected(part: Part, names: tuple[str, ...], ids: ColumnIds) -> Operator:
    plan, bounds = part
    scalars = tuple(map(settled, bounds))
    outputs = ((ids.computed(n, s.type), s) for n, s in zip(names, scalars, strict=True))
    return Project(plan, tuple(outputs))


def _roomy(type_: Type) -> Type:
    """Return the type with all digits before the point that can be stored.

    A sum has more of them with every level.
    """
    if type_.kind != "numeric" or type_.declared:
        return type_
    return replace(type_, precision=MAXIMUM_DIGITS)


def _names(cte: exp.CTE, base: Block) -> tuple[str, ...]:
    """Return the names of the first term, unless the list after the query's name replaces them."""
    alias = cte.args["alias"]
    aliases = tuple(name_of(identifier) for identifier in alias.args.get("columns") or ())
    if len(aliases) > len(base.names):
        available = f"{len(base.names)} columns available but {len(aliases)} columns specified"
        message = f'WITH query "{name_of(alias.this)}" has {available}'
        raise refuse("invalid-query", message, alias)
    return aliases + base.names[len(aliases) :]


def _require_same(name: str, base: Block, overall: tuple[Type, ...], cte: exp.CTE) -> None:
    for place, (column, type_) in enumerate(zip(base.plan.columns, overall, strict=True), 1):
        if column.type.sql != type_.sql:
            types = f"type {column.type.sql} in non-recursive term but type {type_.sql} overall"
            message = f'recursive query "{name}" column {place} has {types}'
            hint = "Cast the output of the non-recursive term to the correct type."
            raise refuse("invalid-query", message, cte, hint)
