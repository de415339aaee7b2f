"""A plan as indented text for people: one line a node, inputs below."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.plan.operators import (
    Accumulate,
    Aggregate,
    AggregateCall,
    Empty,
    Filter,
    GroupState,
    Join,
    Merge,
    Negate,
    Net,
    Operator,
    Project,
    Restrict,
    Scan,
    UnionAll,
)
from headrace.plan.scalar import Call, Column, Literal, Scalar
from headrace.types import Type

_INFIX = frozenset(
    ("+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">=", "||", "and", "or", "like")
) | {"is not distinct from"}


def describe(plan: Operator, names: Mapping[str, str] | None = None) -> str:
    """The whole plan, two blanks a level; `names` gives relations the names people know."""
    return "\n".join(_lines(plan, 0, names or {}))


def _lines(plan: Operator, level: int, names: Mapping[str, str]) -> list[str]:
    lines = ["  " * level + _headline(plan, names)]
    for child in plan.children:
        lines.extend(_lines(child, level + 1, names))
    return lines


def _headline(plan: Operator, names: Mapping[str, str]) -> str:
    match plan:
        case Scan(relation=relation, fields=fields, version=version):
            kind = "" if version == "after" else f" {version}"
            relation = names.get(relation, relation)
            shown = ", ".join(f"{physical} as {column.id}" for physical, column in fields)
            return f"Scan {relation}{kind}: {shown}"
        case Filter(condition=condition):
            return f"Filter {describe_scalar(condition)}"
        case Project(outputs=outputs):
            return "Project " + _assignments(outputs)
        case Join(condition=condition):
            return "Join" if condition is None else f"Join on {describe_scalar(condition)}"
        case Aggregate(keys=keys, calls=calls):
            return f"Aggregate by {_ids(keys)}: {', '.join(map(_aggregate, calls))}".rstrip(": ")
        case Accumulate(state=state) | Merge(state=state):
            return f"{type(plan).__name__} {_state(state)}"
        case Restrict(keys=pairs):
            matches = ", ".join(f"{a.id} = {b.id}" for a, b in pairs)
            return f"Restrict to touched {matches}"
        case UnionAll() | Negate() | Net():
            return type(plan).__name__
        case Empty(fields=columns):
            return f"Empty {_ids(columns)}"
    raise TypeError(f"{type(plan).__name__} cannot be described")


def _ids(columns: tuple[Column, ...]) -> str:
    return ", ".join(column.id for column in columns) or "nothing"


def _assignments(outputs: tuple[tuple[Column, Scalar], ...]) -> str:
    return ", ".join(
        column.id if column == scalar else f"{column.id} = {describe_scalar(scalar)}"
        for column, scalar in outputs
    )


def _aggregate(call: AggregateCall) -> str:
    argument = "*" if call.argument is None else call.argument.id
    return f"{call.output.id} = {call.function}({argument})"


def _state(state: GroupState) -> str:
    keys = _assignments(state.keys) or "nothing"
    extrema = (f"{e.column.id} = {e.kept}({describe_scalar(e.term)})" for e in state.extrema)
    kept = ", ".join([_assignments(state.sums)] * bool(state.sums) + list(extrema))
    return f"by {keys}: {state.rows.id} rows; {kept}".rstrip("; ")


def describe_scalar(scalar: Scalar) -> str:
    """An expression in infix form, every operation in parentheses."""
    match scalar:
        case Column(id=id_):
            return id_
        case Literal(value=value, type=type_):
            return _literal(value, type_)
        case Call(function="case", arguments=(*branches, last)):
            pairs = zip(branches[::2], branches[1::2], strict=True)
            whens = (f"when {describe_scalar(a)} then {describe_scalar(b)}" for a, b in pairs)
            return f"case {' '.join(whens)} else {describe_scalar(last)} end"
        case Call(function="cast", arguments=(argument,), type=type_):
            return f"cast({describe_scalar(argument)} as {_type(type_)})"
        case Call(function="is null", arguments=(argument,)):
            return f"({describe_scalar(argument)} is null)"
        case Call(function="in", arguments=(first, *others)):
            return f"({describe_scalar(first)} in ({', '.join(map(describe_scalar, others))}))"
        case Call(function=name, arguments=(left, right)) if name in _INFIX:
            return f"({describe_scalar(left)} {name} {describe_scalar(right)})"
        case Call(function=name, arguments=arguments):
            return f"{name}({', '.join(map(describe_scalar, arguments))})"


def _type(type_: Type) -> str:
    """A numeric without typmod is shown with the digits that it is computed with."""
    if type_.kind == "numeric" and not type_.declared:
        return f"decimal({type_.precision},{type_.scale})"
    return type_.sql


def _literal(value: object, type_: Type) -> str:
    if value is None:
        return f"null::{type_.sql}"
    if isinstance(value, bool):
        return str(value).lower()
    if type_.kind in ("integer", "bigint", "numeric") and not isinstance(value, str):
        return f"{value:f}" if type_.kind == "numeric" else str(value)
    if type_.kind == "text":
        return "'" + str(value).replace("'", "''") + "'"
    return f"{type_.sql} '{value}'"
