"""Arrays in expressions: ARRAY[…], subscripts, ANY and ALL, and the operators between arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from headrace.algebra.scalar import Literal, Scalar
from headrace.errors import UserError
from headrace.functions import call, cast, common_type
from headrace.functions.decimals import QUOTIENT
from headrace.query.coerce import settled, unified
from headrace.query.literals import Bound, Untyped, typed
from headrace.query.refusal import located, refuse, require_exact, spelled, too_many_digits
from headrace.query.type_names import named_type
from headrace.types import INTEGER, Type, array_of, has_arrays, plain_text


def array_items(comparison: exp.Expr) -> list[exp.Expr] | None:
    """Return the items of `x = ANY (ARRAY[…])` and of `x <> ALL (ARRAY[…])`, else None.

    A cast of the whole array is a cast of every item.
    """
    right = comparison.args["expression"]
    match comparison, right:
        case exp.EQ(), exp.Any(this=listed):
            return listed_items(listed)
        case exp.NEQ(), exp.Anonymous(this=str() as name, expressions=[listed]):
            return listed_items(listed) if name.upper() == "ALL" else None
    return None


def listed_items(listed: exp.Expr) -> list[exp.Expr] | None:
    """Return the items of an array that is spelled out, else None."""
    match listed:
        case exp.Paren(this=inner):
            return listed_items(inner)
        case exp.Array(expressions=[_, *_] as items):
            return items
        case exp.Cast(this=inner, to=exp.DataType(this=exp.DType.ARRAY, expressions=[to])):
            inside = listed_items(inner)
            return inside and [exp.Cast(this=item.copy(), to=to.copy()) for item in inside]
    return None


Bind = Callable[[exp.Expr], Bound]
PAIRS: dict[type[exp.Expr], str] = {
    exp.ArrayContainsAll: "@>",
    exp.ArrayContainedBy: "<@",
    exp.ArrayOverlaps: "&&",
}


def is_array(bound: Bound) -> bool:
    return not isinstance(bound, Untyped) and bound.type.kind == "array"


def as_element(scalar: Scalar) -> Scalar:
    """Return a value as an array holds it: a quotient with the digits that it is shown with."""
    return cast(scalar, QUOTIENT) if scalar.type.rounded else scalar


def constructed(node: exp.Array, bind: Bind) -> Scalar:
    """Return `ARRAY[a, b, …]`."""
    if not node.expressions:
        hint = "Write ARRAY[]::integer[], or another type."
        raise refuse("invalid-query", "cannot determine type of empty array", node, hint)
    items = unified([bind(item) for item in node.expressions], "ARRAY", node)
    with located(node):
        return call("array", *map(as_element, items))


def cast_constructor(node: exp.Cast, bind: Bind) -> Scalar | None:
    """Return `ARRAY[…]::type[]`, where every item has that type; None if it is another cast."""
    inner = node.this
    while isinstance(inner, exp.Paren):
        inner = inner.this
    if not isinstance(inner, exp.Array) or node.args["to"].this != exp.DType.ARRAY:
        return None
    items = listed_items(node)
    if not items:
        return Literal((), named_type(node.args["to"], None))
    with located(node):
        return call("array", *(settled(bind(item)) for item in items))


def subscripted(node: exp.Bracket, bind: Bind) -> Scalar:
    """Return `a[i]`."""
    array = settled(bind(node.this))
    if array.type.kind != "array":
        message = f"a subscript of {array.type.sql} is not maintained"
        raise refuse("unsupported-type", message, node)
    (index,) = node.expressions
    place = bind(index)
    with located(node):
        place = typed(place, INTEGER) if isinstance(place, Untyped) else place
        if not place.type.is_integer:
            raise UserError("unsupported-query", "a subscript that is no integer")
        return call("subscript", array, cast(place, INTEGER))


def quantified_array(node: exp.Expr) -> tuple[str, exp.Expr] | None:
    """Return `any` or `all` and the array, if the right side of a comparison is one of these."""
    match node:
        case exp.Any(this=array):
            return "any", array
        case exp.Anonymous(this=str() as name, expressions=[array]):
            quantifier = {"all": "all", "any": "any", "some": "any"}.get(name.lower())
            return None if quantifier is None else (quantifier, array)
    return None


def quantified_comparison(
    name: str, value: Bound, which: str, array: Bound, node: exp.Expr
) -> Scalar:
    """Return `value name ANY (array)` or `value name ALL (array)`."""
    if not isinstance(value, Untyped) and not has_arrays(value.type):
        message = f"a comparison of {value.type.sql} with an array is not maintained"
        raise refuse("unsupported-query", message, node, "Cast it to text.")
    if isinstance(array, Untyped):
        array = typed(array, array_of(settled(value).type))
    element = array.type.element
    if element is None:
        raise refuse("invalid-query", f"op {which.upper()} requires an array", node)
    scalar = typed(value, element) if isinstance(value, Untyped) else value
    for side in (scalar, array):
        require_exact(side.type, "a comparison", node)
    with located(node):
        return call(f"{name} {which}", scalar, array)


def paired(node: exp.Expr, left: Bound, right: Bound) -> Scalar:
    """Return `a @> b`, `a <@ b` or `a && b`."""
    name = PAIRS[type(node)]
    if not is_array(left) and not is_array(right):
        message = f"{name} is maintained on arrays only"
        raise refuse("unsupported-function", message, node)
    with located(node):
        first, second = alike(left, right)
        return call("@>", second, first) if name == "<@" else call(name, first, second)


def alike(left: Bound, right: Bound) -> tuple[Scalar, Scalar]:
    """Return two arrays in one type; a constant takes the other's, digits are brought together."""
    if isinstance(left, Untyped):
        return settled(typed(left, settled(right).type)), settled(right)
    if isinstance(right, Untyped):
        return left, typed(right, left.type)
    common = common_type([left.type, right.type])
    if not _same_kind(left.type, right.type):
        return left, right
    if common is None:
        raise too_many_digits("a comparison", [left.type, right.type])
    return cast(left, common), cast(right, common)


def _same_kind(left: Type, right: Type) -> bool:
    kinds = [None if type_.element is None else type_.element.kind for type_ in (left, right)]
    return kinds[0] == kinds[1]


def joined(left: Bound, right: Bound) -> Scalar:
    """Return `a || b`: two arrays, or an array and an element before or after it."""
    if not isinstance(left, Untyped) and not is_array(left):
        return _with_element(right, left, before=True)
    if not isinstance(right, Untyped) and not is_array(right):
        return _with_element(left, right, before=False)
    return _cat([left, right])


def _with_element(array: Bound, element: Bound, *, before: bool) -> Scalar:
    typed_element: Bound = element
    if isinstance(element, Untyped):
        of_type = settled(array).type.element
        typed_element = typed(element, plain_text() if of_type is None else of_type)
    scalar = as_element(settled(typed_element))
    if not has_arrays(scalar.type):
        message = f"an array of {scalar.type.sql} is not maintained"
        raise UserError("unsupported-type", message)
    single = call("array", scalar)
    return _cat([single, array] if before else [array, single])


def _cat(sides: Sequence[Bound]) -> Scalar:
    types = [side.type for side in sides if not isinstance(side, Untyped)]
    common = common_type(types)
    if common is None:
        names = " and ".join(map(spelled, types))
        raise UserError("invalid-query", f"{names} cannot be joined")
    scalars = [typed(s, common) if isinstance(s, Untyped) else s for s in sides]
    return call("array_cat", *(cast(scalar, common) for scalar in scalars))


def _counted(name: str, arguments: Sequence[Bound], least: int, most: int) -> None:
    if not least <= len(arguments) <= most:
        raise UserError("invalid-query", f"{name} does not take {len(arguments)} arguments")


def _append(arguments: Sequence[Bound]) -> Scalar:
    _counted("array_append", arguments, 2, 2)
    return _with_element(arguments[0], arguments[1], before=False)


def _prepend(arguments: Sequence[Bound]) -> Scalar:
    _counted("array_prepend", arguments, 2, 2)
    return _with_element(arguments[1], arguments[0], before=True)


def _concatenated(arguments: Sequence[Bound]) -> Scalar:
    _counted("array_cat", arguments, 2, 2)
    return _cat(arguments)


def _length(arguments: Sequence[Bound]) -> Scalar:
    _counted("array_length", arguments, 2, 2)
    array, dimension = arguments
    place = typed(dimension, INTEGER) if isinstance(dimension, Untyped) else dimension
    return call("array_length", settled(array), place)


def _searched(name: str) -> Callable[[Sequence[Bound]], Scalar]:
    def special(arguments: Sequence[Bound]) -> Scalar:
        _counted(name, arguments, 2, 2)
        array, value = settled(arguments[0]), arguments[1]
        element = array.type.element
        if element is None:
            return call(name, array, settled(value))
        typed_value = typed(value, element) if isinstance(value, Untyped) else value
        common = common_type([element, typed_value.type])
        if common is None:
            return call(name, array, typed_value)
        return call(name, cast(array, array_of(common)), cast(typed_value, common))

    return special


def _as_text(arguments: Sequence[Bound]) -> Scalar:
    _counted("array_to_string", arguments, 2, 3)
    array = settled(arguments[0])
    element = array.type.element
    if element is not None and element.kind not in ("text", "boolean"):
        origin = element if element.is_text else plain_text()
        of_text = Type("text", ordered=origin.ordered, folds=origin.folds)
        array = cast(array, array_of(of_text))
    return call("array_to_string", array, *map(settled, arguments[1:]))


ARRAY_CALLS: dict[str, Callable[[Sequence[Bound]], Scalar]] = {
    "array_append": _append,
    "array_cat": _concatenated,
    "array_length": _length,
    "array_position": _searched("array_position"),
    "array_prepend": _prepend,
    "array_remove": _searched("array_remove"),
    "array_to_string": _as_text,
    "array_upper": _length,
}
