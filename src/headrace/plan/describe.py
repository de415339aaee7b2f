"""A plan as indented text for people: one line a node, inputs below."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.algebra.scalar import Call, Column, Literal, Outer, Scalar, Subquery, walk
from headrace.plan.operators import (
    Accumulate,
    Aggregate,
    AggregateCall,
    Empty,
    Filter,
    Frame,
    FrameBound,
    FullJoin,
    GroupState,
    Join,
    Merge,
    Negate,
    Net,
    Operator,
    OuterSemiAntiJoin,
    OuterSemiAntiJoinDelta,
    Part,
    Project,
    Recursive,
    Replicate,
    Restrict,
    Scan,
    SortKey,
    Top,
    TopMerge,
    UnionAll,
    Unnest,
    Unseen,
    Values,
    Window,
    WindowCall,
)
from headrace.plan.surface_operators import Lateral, SetOperation
from headrace.types import Type

_INFIX = frozenset(
    ("+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">=", "||", "and", "or", "like")
) | {"is not distinct from"}


def describe(plan: Operator, names: Mapping[str, str] | None = None) -> str:
    """Return the whole plan, two blanks a level; `names` has the names that users know."""
    return "\n".join(_lines(plan, 0, names or {}))


def _lines(plan: Operator, level: int, names: Mapping[str, str]) -> list[str]:
    lines = ["  " * level + _headline(plan, names)]
    inner = (
        node.plan for scalar in plan.scalars for node in walk(scalar) if isinstance(node, Subquery)
    )
    for child in (*inner, *plan.children):
        lines.extend(_lines(child, level + 1, names))
    return lines


def _headline(plan: Operator, names: Mapping[str, str]) -> str:
    match plan:
        case Scan(relation=relation, fields=fields, version=version):
            kind = "" if version == "after" else f" {version}"
            relation = names.get(relation, relation)
            content = ", ".join(f"{physical} as {column.id}" for physical, column in fields)
            return f"Scan {relation}{kind}: {content}"
        case Filter(condition=condition):
            return f"Filter {describe_scalar(condition)}"
        case Project(outputs=outputs):
            return "Project " + _assignments(outputs)
        case Join(condition=condition) | FullJoin(condition=condition):
            on = "" if condition is None else f" on {describe_scalar(condition)}"
            return f"{type(plan).__name__}{on}"
        case (
            OuterSemiAntiJoin(kind=kind, condition=condition)
            | OuterSemiAntiJoinDelta(kind=kind, condition=condition)
        ):
            on = "" if condition is None else f" on {describe_scalar(condition)}"
            return f"{type(plan).__name__} {kind}{on}"
        case Values(rows=rows):
            content = ", ".join(f"({', '.join(map(describe_scalar, row))})" for row in rows)
            return f"Values {_ids(plan.columns)}: {content}"
        case Replicate(times=times):
            return f"Replicate {describe_scalar(times)} times"
        case Unnest():
            return describe_unnest(plan)
        case Window() | Top() | TopMerge():
            return describe_partitions(plan)
        case Lateral(condition=condition, keep=keep):
            on = "" if condition is None else f" on {describe_scalar(condition)}"
            return f"Lateral{' left' * keep}{on}"
        case SetOperation(kind=kind, once=once):
            return f"{kind.capitalize()}{'' if once else ' all'}"
        case Aggregate(keys=keys, calls=calls):
            return f"Aggregate by {_ids(keys)}: {', '.join(map(_aggregate, calls))}".rstrip(": ")
        case Accumulate(state=state):
            return f"Accumulate {_state(state)}"
        case Merge(state=state, grows=grows):
            return f"Merge{_growing(grows)} {_state(state)}"
        case Restrict(keys=pairs):
            matches = ", ".join(f"{a.id} = {b.id}" for a, b in pairs)
            return f"Restrict to touched {matches}"
        case Recursive(variable=variable, outputs=columns, once=once):
            return f"Recursive{' once' * once} {variable}: {_ids(columns)}"
        case Part(sign=sign):
            return f"Part {sign}"
        case UnionAll() | Negate() | Net() | Unseen():
            return type(plan).__name__
        case Empty(fields=columns):
            return f"Empty {_ids(columns)}"
    raise TypeError(f"{type(plan).__name__} cannot be described")


def describe_unnest(plan: Unnest) -> str:
    """Return the function, its arguments and the columns it gives."""
    arguments = ", ".join(map(describe_scalar, plan.arguments))
    number = () if plan.ordinality is None else (plan.ordinality,)
    left = " left" * plan.keep
    return f"Unnest{left} {_ids((*plan.outputs, *number))} = {plan.function}({arguments})"


def _growing(grows: bool) -> str:
    return " of rows that came" if grows else ""


def describe_partitions(plan: Window | Top | TopMerge) -> str:
    """Return the keys, and what is computed in each partition."""
    if isinstance(plan, TopMerge):
        taken = [f"first {plan.limit}", *(["with ties"] * plan.with_ties)]
        order = _in_order(plan.order, plan.ties)
        return f"TopMerge{_growing(plan.grows)} by {_ids(plan.keys)}: {' '.join(taken)}{order}"
    if isinstance(plan, Top):
        taken = [] if plan.limit is None else [f"first {plan.limit}"]
        taken += [f"after {plan.offset}"] if plan.offset else []
        taken += ["with ties"] * plan.with_ties
        return f"Top by {_ids(plan.keys)}: {' '.join(taken)}{_in_order(plan.order, plan.ties)}"
    return f"Window by {_ids(plan.keys)}: {', '.join(map(_window_call, plan.calls))}"


def _window_call(call: WindowCall) -> str:
    number = () if call.number is None else (str(call.number),)
    arguments = ", ".join((*(argument.id for argument in call.arguments), *number))
    order = _in_order(call.order, call.ties)
    return f"{call.output.id} = {call.function}({arguments}){order}{_frame(call.frame)}"


def _in_order(order: tuple[SortKey, ...], ties: tuple[SortKey, ...]) -> str:
    written = f" in order {_sorted(order)}" * bool(order)
    return written + f" ties by {_sorted(ties)}" * bool(ties)


def _sorted(order: tuple[SortKey, ...]) -> str:
    return ", ".join(
        key.column.id + " desc" * key.descending + " nulls first" * key.nulls_first for key in order
    )


def _frame(frame: Frame | None) -> str:
    if frame is None:
        return ""
    excluded = "" if frame.exclude == "no others" else f" without {frame.exclude}"
    return f" {frame.mode} {_bound(frame.start)} to {_bound(frame.end)}{excluded}"


def _bound(bound: FrameBound) -> str:
    return bound.kind if bound.offset is None else f"{describe_scalar(bound.offset)} {bound.kind}"


def _ids(columns: tuple[Column, ...]) -> str:
    return ", ".join(column.id for column in columns) or "nothing"


def _assignments(outputs: tuple[tuple[Column, Scalar], ...]) -> str:
    return ", ".join(
        column.id if column == scalar else f"{column.id} = {describe_scalar(scalar)}"
        for column, scalar in outputs
    )


def _aggregate(call: AggregateCall) -> str:
    arguments = ", ".join(argument.id for argument in call.arguments) or "*"
    order = f" in order {_sorted(call.order)}" * bool(call.order)
    only = "" if call.only is None else f" where {call.only.id}"
    inside = "distinct " * call.distinct + arguments + order
    return f"{call.output.id} = {call.function}({inside}){only}"


def _state(state: GroupState) -> str:
    keys = _assignments(state.keys) or "nothing"
    extrema = (f"{e.column.id} = {e.kept}({describe_scalar(e.term)})" for e in state.extrema)
    calls = map(_aggregate, state.calls)
    stored = ", ".join([*[_assignments(state.sums)] * bool(state.sums), *extrema, *calls])
    return f"by {keys}: {state.rows.id} rows; {stored}".rstrip("; ")


def describe_scalar(scalar: Scalar) -> str:
    """Return an expression in infix form, every operation in parentheses."""
    match scalar:
        case Column(id=id_):
            return id_
        case Literal(value=value, type=type_):
            return _literal(value, type_)
        case Outer(scalar=outside):
            return f"outer({describe_scalar(outside)})"
        case Subquery(kind=kind, test=test):
            return kind if test is None else f"{kind} {describe_scalar(test)}"
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
    """Return the type's SQL; of a numeric without typmod, the digits that it is computed with."""
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
