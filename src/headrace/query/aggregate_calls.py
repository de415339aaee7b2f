"""Aggregate calls: arguments, DISTINCT, ORDER BY inside and WITHIN GROUP, FILTER."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from headrace.algebra.scalar import Column, Literal, Outer, Scalar, walk
from headrace.functions import AGGREGATE_BY_NAME, AggregateFunction, call, cast
from headrace.functions.aggregates.aggregate import without_sign_of_zero
from headrace.functions.text import text_of
from headrace.query.array_expressions import as_element
from headrace.query.coerce import settled
from headrace.query.grouping import AggregateRequest
from headrace.query.literals import Bound, Untyped, typed
from headrace.query.ordering import sorted_entry
from headrace.query.refusal import EQUAL_INTERVALS, incomparable, located, refuse, require_exact
from headrace.query.schema import order_by_value
from headrace.types import BIGINT, DOUBLE, Type, plain_text

if TYPE_CHECKING:
    from headrace.query.expressions import Expressions

Ordered = tuple[Scalar, bool, bool]


@dataclass(frozen=True)
class WrittenCall:
    """A call as its text says it; `within` are the sort keys of WITHIN GROUP."""

    name: str
    node: exp.Anonymous
    arguments: tuple[exp.Expr, ...]
    distinct: bool
    order: tuple[exp.Expr, ...]
    within: tuple[exp.Expr, ...] | None


def written(node: exp.Anonymous, name: str, within: exp.Order | None) -> WrittenCall:
    """Return the parts of a call: the parser hangs DISTINCT and ORDER BY on the arguments."""
    arguments = list(node.expressions)
    order: tuple[exp.Expr, ...] = ()
    if arguments and isinstance(arguments[-1], exp.Order):
        order = tuple(arguments[-1].expressions)
        arguments[-1] = arguments[-1].this
    distinct = bool(arguments) and isinstance(arguments[0], exp.Distinct)
    if distinct:
        (first, *rest) = arguments
        arguments = [*first.expressions, *rest]
    entries = None if within is None else tuple(within.expressions)
    return WrittenCall(name, node, tuple(arguments), distinct, order, entries)


def request(
    parts: WrittenCall, only: Scalar | None, inside: Expressions, *, over: bool = False
) -> AggregateRequest:
    """Return the call, typed; `only` is its FILTER. With OVER, the window says the order."""
    function = AGGREGATE_BY_NAME[parts.name]
    if (parts.within is not None) != (function.order == "within"):
        required = "requires" if function.order == "within" else "does not take"
        raise refuse("invalid-query", f"{parts.name} {required} WITHIN GROUP", parts.node)
    if function.order == "within":
        return _within(function, parts, only, inside)
    if len(parts.arguments) == 1 and isinstance(parts.arguments[0], exp.Star):
        if parts.name != "count" or parts.distinct:
            raise refuse("invalid-query", f"{parts.name}(*) does not exist", parts.node)
        if only is not None and not over:
            _require_own_rows([only], parts.node)
        return AggregateRequest("count", () if only is None else (_only(only, None),), BIGINT)
    if not parts.arguments:
        raise refuse("invalid-query", f"{parts.name} needs an argument", parts.node)
    if any(isinstance(argument, exp.Tuple) for argument in parts.arguments):
        hint = "Aggregate over a SELECT DISTINCT of the columns."
        raise refuse(
            "unsupported-query", f"{parts.name} of rows is not maintained", parts.node, hint
        )
    bound = [inside.bind(argument) for argument in parts.arguments]
    plain = [settled(argument) for argument in bound]
    arguments = _coerced(function, bound, parts.node)
    type_ = _type(function, arguments, parts.node)
    if over:
        _require_own_rows(arguments, parts.node)
    remaining_filter = only
    if only is not None and function.needed:
        arguments[0], remaining_filter = _only(only, arguments[0]), None
    order: list[Ordered] = []
    if not over:
        order = _sort_keys(parts, plain, arguments, inside)
        filters = () if remaining_filter is None else (remaining_filter,)
        _require_own_rows([*arguments, *filters, *(key for key, _, _ in order)], parts.node)
        order = _order(function, parts, order, arguments)
    distinct = parts.distinct and function.repeats
    return AggregateRequest(
        function.name, tuple(arguments), type_, distinct, tuple(order), remaining_filter
    )


def _within(
    function: AggregateFunction, parts: WrittenCall, only: Scalar | None, inside: Expressions
) -> AggregateRequest:
    """Return an ordered-set call: the sorted value first, then the arguments in its parentheses."""
    assert parts.within is not None
    if parts.distinct or parts.order:
        message = f"DISTINCT and ORDER BY are not allowed in {parts.name}"
        raise refuse("invalid-query", message, parts.node)
    if len(parts.arguments) != function.arguments - 1 or len(parts.within) != 1:
        raise refuse("invalid-query", f"{parts.name} takes other arguments", parts.node)
    entry = sorted_entry(
        parts.within[0], lambda node: settled(inside.bind(node)), f"{parts.name} WITHIN GROUP"
    )
    (value,) = _coerced(function, [without_sign_of_zero(entry.scalar)], parts.node)
    fractions = [_fraction(inside.bind(node), node) for node in parts.arguments]
    type_ = _type(function, [value, *fractions], parts.node)
    if only is not None:
        value = _only(only, value)
    _require_own_rows([value], parts.node)
    order = ((value, entry.descending, entry.nulls_first),)
    return AggregateRequest(function.name, (value, *fractions), type_, order=order)


def _fraction(bound: Bound, node: exp.Expr) -> Scalar:
    if isinstance(bound, Untyped):
        # Of the forms for one fraction and for an array of them, PostgreSQL prefers the first.
        bound = typed(bound, DOUBLE)
    if not isinstance(bound, Literal) or not bound.type.is_number:
        message = "a percentile that is not a constant number is not maintained"
        raise refuse("unsupported-query", message, node, "Write one call for each percentile.")
    if bound.value is None:
        return Literal(None, DOUBLE)
    number = float(bound.value)  # type: ignore[arg-type]
    if not 0 <= number <= 1:
        message = f"percentile value {number:g} is not between 0 and 1"
        raise refuse("invalid-query", message, node)
    return Literal(number, DOUBLE)


def _coerced(function: AggregateFunction, bound: Sequence[Bound], node: exp.Expr) -> list[Scalar]:
    """Return the arguments in the types that the function is defined on."""
    coerced: list[Scalar] = []
    with located(node):
        for argument in bound:
            if function.takes is not None:
                value = (
                    typed(argument, function.takes) if isinstance(argument, Untyped) else argument
                )
                coerced.append(cast(value, function.takes) if value.type.is_number else value)
            elif function.name == "string_agg":
                coerced.append(_as_text(argument))
            elif function.name == "array_agg":
                coerced.append(as_element(without_sign_of_zero(settled(argument))))
            else:
                coerced.append(settled(argument))
    return _collated(coerced) if function.name == "string_agg" else coerced


def _collated(texts: Sequence[Scalar]) -> list[Scalar]:
    """Return the texts, of which a constant gives up its collation for that of another one."""
    decided = text_of(texts)
    return [
        replace(text, type=replace(text.type, ordered=decided.ordered, folds=decided.folds))
        if isinstance(text, Literal) and text.type.is_text
        else text
        for text in texts
    ]


def _as_text(bound: Bound) -> Scalar:
    if isinstance(bound, Untyped):
        return typed(bound, plain_text())
    if not bound.type.is_text:
        return bound
    return cast(bound, Type("text", ordered=bound.type.ordered, folds=bound.type.folds))


def _type(function: AggregateFunction, arguments: Sequence[Scalar], node: exp.Expr) -> Type:
    name = function.name
    types = [argument.type for argument in arguments]
    if len(types) != function.arguments:
        raise refuse("invalid-query", f"{name} does not take {len(types)} arguments", node)
    type_ = function.type_of(*types)
    if type_ is not None:
        return type_
    if name in ("min", "max") and types[0].is_text and not types[0].ordered:
        hint = 'Write COLLATE "C" after the text, or declare the column so.'
        raise refuse("collation-unsupported", f"{name} on text needs collation C", node, hint)
    way_out = {"character": "Cast it to text.", "interval": EQUAL_INTERVALS}.get(types[0].kind)
    type_names = ", ".join(each.sql for each in types)
    raise refuse("unsupported-function", f"{name}({type_names}) is not maintained", node, way_out)


def _sort_keys(
    parts: WrittenCall,
    plain: Sequence[Scalar],
    arguments: Sequence[Scalar],
    inside: Expressions,
) -> list[Ordered]:
    """Return the sort keys that are written inside the call."""
    if parts.distinct:
        for argument in arguments:
            if argument.type.comparison == "none":
                raise incomparable("DISTINCT", argument.type, parts.node)
            require_exact(argument.type, "DISTINCT", parts.node)
    order: list[Ordered] = []
    for node in parts.order:
        entry = sorted_entry(node, lambda part: settled(inside.bind(part)), "ORDER BY")
        key = entry.scalar
        if key in plain:
            key = arguments[plain.index(key)]
        elif parts.distinct:
            message = "with DISTINCT, ORDER BY expressions must appear in the argument list"
            raise refuse("invalid-query", message, parts.node)
        order.append((key, entry.descending, entry.nulls_first))
    return order


def _order(
    function: AggregateFunction,
    parts: WrittenCall,
    order: Sequence[Ordered],
    arguments: Sequence[Scalar],
) -> list[Ordered]:
    """Return the sort keys, then the arguments themselves: only equal rows are left undecided.

    Nothing where the order of rows does not count.
    """
    if function.order == "none":
        return []
    # PostgreSQL sorts what it takes once each, by the arguments themselves.
    sorted_once = parts.distinct and all(a.type.comparison == "ordered" for a in arguments)
    if not order and not sorted_once:
        order_by_value(parts.name, parts.node, f"Say in which order: {function.syntax}")
    return [*order, *((a, False, False) for a in arguments if not isinstance(a, Literal))]


def _only(only: Scalar, argument: Scalar | None) -> Scalar:
    """Return the argument, NULL for rows that the filter drops: an aggregate skips NULLs."""
    value: Scalar = Literal(1, BIGINT) if argument is None else argument
    return call("case", only, value, Literal(None, value.type))


def _require_own_rows(inputs: Sequence[Scalar], node: exp.Expr) -> None:
    """Refuse an aggregate of the enclosing query's columns alone: it belongs to that query.

    `inputs` are its arguments, FILTER and ORDER BY, which decide this together.
    """
    nodes = [part for scalar in inputs for part in walk(scalar)]
    outside = any(isinstance(part, Outer) for part in nodes)
    if outside and not any(isinstance(part, Column) for part in nodes):
        raise refuse(
            "unsupported-query",
            "an aggregate of the enclosing query inside a subquery is not maintained",
            node,
        )


def within_aggregate(expressions: Expressions, name: str) -> Expressions:
    """Return the binder of what stands inside a call: no aggregate, no window."""
    clause = f"the argument of {name}"
    return replace(expressions, clause=clause, aggregates=None, windows=None)
