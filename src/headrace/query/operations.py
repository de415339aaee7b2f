"""Operations on bound operands, among them chains of -> and #> as one path into a document."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice

from sqlglot import exp

from headrace.algebra.scalar import Call, Literal, Scalar, walk
from headrace.errors import UserError
from headrace.functions import call, cast
from headrace.functions.documents import JSONB, path_text
from headrace.functions.numbers import undeclared
from headrace.query.array_expressions import ARRAY_CALLS, alike, is_array, joined
from headrace.query.calls import CALLABLE, REGULAR, NamedFunction, refuse_call
from headrace.query.coerce import compared, first_of_nullif, operands, settled, unified
from headrace.query.literals import Bound, Untyped, typed
from headrace.query.parse import UNARY_PLUS, too_deep
from headrace.query.refusal import located, refuse, require_exact
from headrace.query.special_calls import SPECIAL, counted
from headrace.types import BOOLEAN, TEXT, Type, plain_text

EXTRACTIONS = (exp.JSONExtract, exp.JSONExtractScalar, exp.JSONBExtract, exp.JSONBExtractScalar)
_TEXTS = (exp.JSONExtractScalar, exp.JSONBExtractScalar)
_KEYS = re.compile(r"\{([A-Za-z_]\w*(?:,[A-Za-z_]\w*)*)\}")


def is_extraction(node: exp.Expr) -> bool:
    """Return whether the node is an extraction, or a cast of its key.

    The parser takes that for a cast of the whole.
    """
    return isinstance(node.this if isinstance(node, exp.Cast) else node, EXTRACTIONS)


def extracted(node: exp.Expr, bind: Callable[[exp.Expr], Bound]) -> Scalar:
    """Return the text at the end of a chain; `bind` binds the document that it begins with."""
    outermost = _uncast(node)
    if not isinstance(outermost, _TEXTS):
        hint = "Write ->> or #>> for the text of what is there."
        raise refuse("unsupported-type", "a part of a document as jsonb", node, hint)
    keys: list[str] = []
    inner: exp.Expr = outermost
    while is_extraction(inner):
        link = _uncast(inner)
        if link is not outermost and isinstance(link, _TEXTS):
            break
        keys = [*_keys(link), *keys]
        inner = link.this
        while isinstance(inner, exp.Paren):
            inner = inner.this
    document = settled(bind(inner))
    if document.type != JSONB:
        message = f"{document.type.sql} is no document"
        raise refuse("unsupported-type", message, node, "Only jsonb is maintained.")
    with located(node):
        return call("json text", document, Literal(path_text(keys), plain_text()))


def _uncast(node: exp.Expr) -> exp.Expr:
    """Return the node without a cast of its key to text, as in `a -> 'key'::text`."""
    if not isinstance(node, exp.Cast):
        return node
    if node.args["to"].this != exp.DType.TEXT:
        hint = "Put parentheses around what is cast."
        raise refuse("unsupported-query", "a cast of a document's key", node, hint)
    inner: exp.Expr = node.this
    return inner


def _keys(link: exp.Expr) -> list[str]:
    written = link.args["expression"]
    while isinstance(written, (exp.Paren, exp.Cast)):
        written = written.this
    if isinstance(written, exp.Literal) and written.is_string:
        if isinstance(link, (exp.JSONExtract, exp.JSONExtractScalar)):
            return [written.name]
        keys = _KEYS.fullmatch(written.name)
        if keys is not None and "null" not in (key.lower() for key in keys[1].split(",")):
            return [*keys[1].split(",")]
    # NULL without quotes is no key: in an array constant it is the value NULL.
    hint = "Write keys of objects, as constants."
    raise refuse("unsupported-function", "this path into a document", link, hint)


LARGEST_REPEATED = 2000
"""Nodes of an operand, times its repetitions, that lowering may put into a plan."""

_ORDERING = frozenset({"<", "<=", ">", ">="})


def negation(scalar: Scalar) -> Scalar:
    return Call("not", (scalar,), BOOLEAN)


def compare(name: str, left: Bound, right: Bound, node: exp.Expr) -> Scalar:
    """Return a comparison by its row's name; text is ordered under collation C only."""
    if is_array(left) or is_array(right):
        with located(node):
            first, second = alike(left, right)
    else:
        first, second = compared(left, right)
    for side in (first, second):
        require_exact(side.type, "a comparison", node)
    if name in _ORDERING:
        first, second = _collated(first, second), _collated(second, first)
        for side in (first, second):
            if side.type.is_text and not side.type.ordered:
                raise refuse(
                    "collation-unsupported",
                    f"{name} on text needs collation C",
                    node,
                    'Write COLLATE "C" after the text, or declare the column so.',
                )
    with located(node):
        return call(name, first, second)


def _collated(side: Scalar, other: Scalar) -> Scalar:
    """Return the side; a constant's collation yields to that of a column."""
    if not isinstance(side, Literal) or isinstance(other, Literal) or not side.type.is_text:
        return side
    return replace(side, type=replace(side.type, ordered=other.type.ordered))


def concatenate(left: Bound, right: Bound, node: exp.Expr) -> Scalar:
    """Return text joined with anything: a bare constant is text, whatever stands beside it."""
    bounds = (left, right)
    if is_array(left) or is_array(right):
        with located(node):
            return joined(left, right)
    if any(not isinstance(bound, Untyped) and bound.type.kind == "bytea" for bound in bounds):
        with located(node):
            return call("||", *operands(left, right))
    text_types = [b.type for b in bounds if not isinstance(b, Untyped) and b.type.is_text]
    if not text_types and not any(isinstance(bound, Untyped) for bound in bounds):
        raise refuse("unsupported-function", "|| needs text on one side", node)
    text = replace(text_types[0], kind="text", length=None) if text_types else plain_text()
    sides = [typed(bound, text) if isinstance(bound, Untyped) else bound for bound in bounds]
    with located(node):
        return call("||", *(s if s.type.is_text else cast(s, plain_text()) for s in sides))


def constant_as(untyped: Untyped, target: Type) -> Scalar:
    """Return a cast of a bare constant.

    Read as the type, then cut to the digits or length it names.
    """
    literal = typed(untyped, target)
    if target.is_text:
        plain = plain_text()
        return cast(literal, replace(target, ordered=plain.ordered, folds=plain.folds))
    exact = target.element or target
    if exact.declared or exact.length is not None:
        return cast(literal, target)
    return literal


def call_named(name: str, arguments: Sequence[Bound], node: exp.Expr) -> Scalar:
    """Return a function by the name that the user wrote."""
    with located(node):
        match name, arguments:
            case "coalesce", [_, *_]:
                return call("coalesce", *unified(arguments, "COALESCE", node))
            case (("greatest" | "least"), [_, *_]):
                return _extreme(name, unified(arguments, name.upper(), node))
            case "nullif", [left, right]:
                return _null_if(left, right, node)
            case "substring", [_, *places] if _are_texts(places):
                raise refuse_call("substring", node, REGULAR)
            case _ if name == UNARY_PLUS:
                (value,) = (settled(argument) for argument in arguments)
                if value.type.is_number:
                    return cast(value, undeclared(value.type))
            case _ if name in ARRAY_CALLS:
                return ARRAY_CALLS[name](arguments)
            case _ if name in SPECIAL:
                return SPECIAL[name](arguments)
        function = CALLABLE.get(name)
        if function is None:
            raise refuse_call(name, node)
        return _call_row(name, function, arguments)


def _are_texts(places: Sequence[Bound]) -> bool:
    """Return whether substring takes a pattern: a bare constant beside no integer is text."""
    return bool(places) and all(
        isinstance(place, Untyped) or place.type.is_text for place in places
    )


def _call_row(name: str, function: NamedFunction, arguments: Sequence[Bound]) -> Scalar:
    most = len(function.parameters)
    least = most - len(function.defaults)
    counted(name, arguments, least, most)
    scalars = [
        typed(argument, _plain(parameter)) if isinstance(argument, Untyped) else argument
        for argument, parameter in zip(arguments, function.parameters, strict=False)
    ]
    defaults = function.defaults[len(arguments) - least :]
    return call(function.row, *scalars, *(replace(d, type=_plain(d.type)) for d in defaults))


def _plain(type_: Type) -> Type:
    return plain_text() if type_ == TEXT else type_


def _extreme(name: str, values: Sequence[Scalar]) -> Scalar:
    types = {value.type for value in values}
    if any(type_.kind == "character" for type_ in types) and (
        len(types) > 1 or any(type_.keeps_blanks for type_ in types)
    ):
        message = f"{name} of char(n) beside other texts is not maintained"
        raise UserError("unsupported-query", message, hint="Cast the char(n) expression to text.")
    if any(value.type.is_text and not value.type.ordered for value in values):
        hint = 'Write COLLATE "C" after the text, or declare the column so.'
        raise UserError("collation-unsupported", f"{name} on text needs collation C", hint=hint)
    return call(name, *values)


def _null_if(left: Bound, right: Bound, node: exp.Expr) -> Scalar:
    first, second = operands(left, right)
    for side in (first, second):
        require_exact(side.type, "NULLIF", node)
    result = first_of_nullif(first, second, node, bare=isinstance(right, Untyped))
    moments = {first.type.kind, second.type.kind} == {"date", "timestamp"}
    if not moments and not first.type.keeps_blanks:
        return call("nullif", result, second)
    return call("case", compare("=", left, right, node), Literal(None, result.type), result)


def repeatable(bound: Bound, times: int) -> Bound:
    """Return an operand that the plan will hold so many times; nested repetition multiplies."""
    if isinstance(bound, Untyped):
        return bound
    size = sum(1 for _ in islice(walk(bound), LARGEST_REPEATED + 1))
    if size > 1 and size * times > LARGEST_REPEATED:
        raise too_deep()
    return bound
