"""The names PostgreSQL gives to unnamed output columns."""

from __future__ import annotations

from sqlglot import exp

from headrace.query.identifiers import name_of
from headrace.query.parse import UNARY_PLUS
from headrace.query.type_names import internal_name, named_type

UNNAMED = "?column?"


def output_name(node: exp.Expr) -> str:
    """The name of an output column without AS."""
    name, _ = _named(node)
    return name or UNNAMED


def _named(node: exp.Expr) -> tuple[str | None, bool]:
    """A name and whether it is a good one: a cast or CASE around it keeps a good name only."""
    match node:
        case exp.Paren() | exp.Collate() | exp.Filter():
            return _named(node.this)
        case exp.Column():
            return name_of(node.this), True
        case exp.Anonymous():
            name = name_of(node.this)
            return (None, False) if name == UNARY_PLUS else (name, True)
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
