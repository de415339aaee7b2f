"""A query of any form as a plan: SELECT, VALUES or a set operation, perhaps with WITH before it."""

from __future__ import annotations

from sqlglot import exp

from headrace.query.block import Block
from headrace.query.context import Context
from headrace.query.expressions import Expressions
from headrace.query.limits import limited, without_parentheses
from headrace.query.scope import Scope
from headrace.query.select import bind_select
from headrace.query.set_operations import Branches
from headrace.query.values import bind_values
from headrace.query.with_clause import with_defined


def bind_query(node: exp.Expr, context: Context) -> Block:
    """The query's plan. A query of WITH is bound wherever it is used, each time with new ids."""
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
    """A chain of set operations reads from the left, and may be long."""
    chain: list[exp.SetOperation] = [node]
    while isinstance(chain[-1].this, exp.SetOperation):
        chain.append(chain[-1].this)
    branches = Branches.of(bind_query(chain[-1].this, context))
    for link in reversed(chain):
        right = bind_query(link.args["expression"], context)
        branches = branches.followed(right, context.ids, link)
    return branches.block(context.ids)
