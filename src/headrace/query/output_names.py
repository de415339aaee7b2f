"""The names PostgreSQL gives to unnamed output columns."""

from __future__ import annotations

from sqlglot import exp

from headrace.query.calls import KEYWORD_CALLS, column_name
from headrace.query.identifiers import name_of
from headrace.query.parse import UNARY_PLUS, parse, reporting_internal_errors
from headrace.query.type_names import internal_name, named_type

UNNAMED = "?column?"


def output_name(node: exp.Expr) -> str:
    """Return the name of an output column without AS."""
    name, _ = _named(node)
    return name or UNNAMED


@reporting_internal_errors()
def first_names(text: str) -> tuple[str, ...] | None:
    """Return the output columns of a query as its first SELECT names them; None if it has stars."""
    query: exp.Expr = parse(text)
    while not isinstance(query, exp.Select):
        query = query.this
    if any(expression.is_star for expression in query.expressions):
        return None
    return tuple(output_name(expression) for expression in query.expressions)


def _named(node: exp.Expr) -> tuple[str | None, bool]:
    """Return a name and whether it is a good one.

    A cast or CASE around it keeps a good name only.
    """
    match node:
        case exp.Paren() | exp.Collate() | exp.Window() | exp.Filter() | exp.WithinGroup():
            return _named(node.this)
        case exp.Column():
            return name_of(node.this), True
        case exp.Anonymous():
            name = name_of(node.this)
            return (None, False) if name == UNARY_PLUS else (name, True)
        case exp.Bracket():
            return _named(node.this)
        case exp.Array():
            return "array", True
        case exp.Exists():
            return "exists", True
        case exp.Subquery() | exp.SetOperation():
            # The first column of a query gives its name to the value; a set operation has those
            # of its first branch.
            return _named(node.this)
        case exp.Select(expressions=[first, *_]):
            return output_name(first), True
        case exp.Alias():
            return name_of(node.args["alias"]), True
        case exp.Interval():
            return "interval", False
        case _ if isinstance(node, KEYWORD_CALLS):
            called = column_name(node)
            return called, called is not None
        case exp.Cast():
            name_, good = _named(node.this)
            if good:
                return name_, True
            return internal_name(named_type(node.args["to"], None)), False
        case exp.Case():
            default = node.args.get("default")
            name_, good = (None, False) if default is None else _named(default)
            return (name_, True) if good else ("case", False)
        case _:
            return None, False
