"""WITH: the names that it puts before the tables of the schema."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from headrace.query.context import Context, Defined, WorkingTable
from headrace.query.identifiers import name_of
from headrace.query.recursion_rules import check_recursion
from headrace.query.refusal import refuse
from headrace.query.with_names import self_references


def with_defined(with_: exp.With, context: Context) -> Context:
    """What is visible behind WITH. Each query sees the ones before it, in a recursive WITH all."""
    seen: set[str] = set()
    for cte in with_.expressions:
        name = _name(cte)
        if name in seen:
            message = f'WITH query name "{name}" specified more than once'
            raise refuse("invalid-query", message, cte.args["alias"])
        seen.add(name)
    if not with_.args.get("recursive"):
        for cte in with_.expressions:
            context = context.defining(_name(cte), Defined(cte, context))
        return context
    check_recursion(with_)
    defined: dict[str, Defined | WorkingTable] = dict(context.defined)
    context = replace(context, defined=defined)
    for cte in with_.expressions:
        variable = context.ids.recursion(cte) if self_references(cte) else None
        defined[_name(cte)] = Defined(cte, context, variable)
    return context


def _name(cte: exp.CTE) -> str:
    return name_of(cte.args["alias"].this)
