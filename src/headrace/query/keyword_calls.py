"""Calls that are written with keywords or as operators, brought to a name and arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

Arguments = list[Any]


def _trim(node: exp.Expr) -> tuple[str, Arguments]:
    side = node.args.get("position") or "BOTH"
    name = {"BOTH": "btrim", "LEADING": "ltrim", "TRAILING": "rtrim"}[str(side).upper()]
    return name, [node.this, node.args.get("expression")]


def _extract(node: exp.Expr) -> tuple[str, Arguments]:
    field = exp.Literal.string(node.this.name)
    return "extract", [field, node.args["expression"]]


_READ: Mapping[type[exp.Expr], Callable[[exp.Expr], tuple[str, Arguments]]] = {
    exp.Substring: lambda n: ("substring", [n.this, n.args.get("start"), n.args.get("length")]),
    exp.Trim: _trim,
    exp.StrPosition: lambda n: ("position", [n.this, n.args["substr"]]),
    exp.Extract: _extract,
    exp.AtTimeZone: lambda n: ("timezone", [n.args["zone"], n.this]),
    exp.StartsWith: lambda n: ("starts_with", [n.this, n.args["expression"]]),
    exp.Sqrt: lambda n: ("sqrt", [n.this]),
}
KEYWORD_CALLS = tuple(_READ)
_OPERATORS = (exp.StartsWith, exp.Sqrt)


def keyword_call(node: exp.Expr) -> tuple[str, list[exp.Expr]]:
    """The function that the node calls, and its arguments in their order."""
    name, arguments = _READ[type(node)](node)
    return name, [argument for argument in arguments if argument is not None]


def column_name(node: exp.Expr) -> str | None:
    """The name that PostgreSQL gives to an unnamed column of the call."""
    return None if isinstance(node, _OPERATORS) else keyword_call(node)[0]
