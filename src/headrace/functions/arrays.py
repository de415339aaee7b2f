"""Arrays: construction, elements, and tests over their elements.

An array has one dimension that is counted from 1. Its elements may be NULL, and are searched for
with IS NOT DISTINCT FROM.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from headrace.algebra.scalar import Call, Column, Literal, Scalar, Value
from headrace.functions.comparison import COMPARISONS, comparable
from headrace.functions.function import Function, Rendering, spark_cast, spark_function
from headrace.functions.logic import common_type
from headrace.functions.spark import case, let, minus, number
from headrace.types import BOOLEAN, INTEGER, TEXT, Type, array_of, has_arrays

Expression = exp.Expression
Array = tuple[Value, ...]
SAME = next(f for f in COMPARISONS if f.name == "is not distinct from")


def variable(name: str) -> Expression:
    """Return the variable that stands for an element in a lambda."""
    return exp.Column(this=exp.to_identifier(name))


def each(name: str, array: Expression, body: Expression, element: str = "item") -> Expression:
    """Return one of Spark's functions with a lambda over the elements."""
    return spark_function(
        name, array, exp.Lambda(this=body, expressions=[exp.to_identifier(element)])
    )


def is_null(expression: Expression) -> Expression:
    return spark_function("isnull", expression.copy())


def _array_type(arguments: Sequence[Scalar]) -> Type | None:
    common = common_type([argument.type for argument in arguments])
    if common is None or not has_arrays(common):
        return None
    alike = all(argument.type.kind == common.kind for argument in arguments)
    return array_of(common) if alike else None


def _array_spark(values: Sequence[Expression], _: Sequence[Type], type_: Type) -> Expression:
    assert type_.element is not None
    return spark_function("array", *(spark_cast(value, type_.element) for value in values))


def _element_type(arguments: Sequence[Scalar]) -> Type | None:
    array, place = arguments
    return array.type.element if place.type == INTEGER else None


def _element_spark(arguments: Sequence[Expression], *_: object) -> Expression:
    def subscript(array: Expression, place: Expression) -> Expression:
        # Spark counts from 0, and no element is before the first.
        before = exp.LT(this=place, expression=number(1))
        element = spark_function("get", array, minus(place.copy(), number(1)))
        return case(before, exp.Null(), element)

    return let(arguments, subscript)


def _element(array: Array, place: int) -> Value:
    return array[place - 1] if 1 <= place <= len(array) else None


def _integer_of_array(arguments: Sequence[Scalar]) -> Type | None:
    return INTEGER if arguments[0].type.kind == "array" else None


def _length_type(arguments: Sequence[Scalar]) -> Type | None:
    array, dimension = arguments
    return INTEGER if array.type.kind == "array" and dimension.type == INTEGER else None


def _length_spark(arguments: Sequence[Expression], *_: object) -> Expression:
    def length(array: Expression, dimension: Expression) -> Expression:
        only = exp.EQ(this=dimension, expression=number(1))
        size = spark_function("nullif", spark_function("size", array.copy()), number(0))
        return case(only, case(is_null(array), exp.Null(), size), exp.Null())

    return let(arguments, length)


def _with_element(arguments: Sequence[Scalar]) -> Type | None:
    """Return the array's type, if the value has exactly its elements' type and can be compared."""
    array, value = arguments
    fits = array.type.element == value.type and array.type.comparison != "none"
    return array.type if fits else None


def _same(item: Expression, value: Expression, type_: Type) -> Expression:
    return SAME.spark((item, value), (type_, type_), BOOLEAN)


def _position_type(arguments: Sequence[Scalar]) -> Type | None:
    return None if _with_element(arguments) is None else INTEGER


def _position_spark(arguments: Sequence[Expression], types: Sequence[Type], _: Type) -> Expression:
    array, value = arguments
    matches = each("transform", array, _same(variable("item"), value, types[1]))
    place = spark_function("array_position", matches, exp.Boolean(this=True))
    return spark_cast(spark_function("nullif", place, number(0)), INTEGER)


def _position(array: Array | None, value: Value) -> Value:
    places = (i for i, item in enumerate(array or (), 1) if SAME.evaluate(item, value))
    return next(places, None)


def _remove_spark(arguments: Sequence[Expression], types: Sequence[Type], _: Type) -> Expression:
    array, value = arguments
    differs = exp.Not(this=exp.Paren(this=_same(variable("item"), value, types[1])))
    return each("filter", array, differs)


def _removed(array: Array | None, value: Value) -> Value:
    if array is None:
        return None
    return tuple(item for item in array if not SAME.evaluate(item, value))


def _joined_type(arguments: Sequence[Scalar]) -> Type | None:
    """Return the type of two arrays of exactly one type; NULL beside an array acts as empty."""
    left, right = arguments
    return left.type if left.type.kind == "array" and left.type == right.type else None


def _joined_spark(arguments: Sequence[Expression], _: Sequence[Type], type_: Type) -> Expression:
    nothing = spark_cast(spark_function("array"), type_)

    def joined(left: Expression, right: Expression) -> Expression:
        sides = (spark_function("coalesce", a.copy(), nothing.copy()) for a in (left, right))
        neither = exp.and_(is_null(left), is_null(right))
        return case(neither, exp.Null(), spark_function("concat", *sides))

    return let(arguments, joined)


def _joined(left: Array | None, right: Array | None) -> Value:
    return None if left is None and right is None else (*(left or ()), *(right or ()))


def _text_type(arguments: Sequence[Scalar]) -> Type | None:
    array, *texts = arguments
    element = array.type.element
    if element is None or element.kind != TEXT.kind or not all(t.type.is_text for t in texts):
        return None
    typed = [(array, element), *((text, text.type) for text in texts)]
    # The collation of constants yields, as everywhere.
    types = [type_ for scalar, type_ in typed if not _is_constant(scalar)]
    types = types or [type_ for _, type_ in typed]
    return Type(
        TEXT.kind,
        ordered=all(type_.ordered for type_ in types),
        folds=all(type_.folds for type_ in types),
    )


def _is_constant(scalar: Scalar) -> bool:
    """Return whether the scalar is a constant, or an array of constants that is spelled out."""
    if isinstance(scalar, Call) and scalar.function in ("array", "cast"):
        return all(map(_is_constant, scalar.arguments))
    return isinstance(scalar, Literal)


def _text_spark(arguments: Sequence[Expression], *_: object) -> Expression:
    if len(arguments) == 2:
        return spark_function("array_join", *arguments)

    def joined(array: Expression, separator: Expression, null: Expression) -> Expression:
        plain = spark_function("array_join", array.copy(), separator.copy())
        return case(is_null(null), plain, spark_function("array_join", array, separator, null))

    return let(arguments, joined)


def _text(array: Array | None, separator: str | None, null: str | None = None) -> Value:
    if array is None or separator is None:
        return None
    texts = (null if item is None else str(item) for item in array)
    return separator.join(item for item in texts if item is not None)


def _function(
    name: str,
    type_of: Callable[[Sequence[Scalar]], Type | None],
    spark: Callable[..., Expression],
    evaluate: Callable[..., Value],
    syntax: str,
    note: str = "",
) -> Function:
    return Function(name, type_of, spark, evaluate, syntax, strict=False, note=note)


ARRAYS: tuple[Function, ...] = (
    _function(
        "array",
        _array_type,
        _array_spark,
        lambda *values: values,
        "ARRAY[a, b, …]",
        note="One dimension; not of char(n).",
    ),
    Function("subscript", _element_type, _element_spark, _element, "a[i]"),
    Function(
        "cardinality",
        _integer_of_array,
        lambda a, *_: spark_function("size", *a),
        len,
        "cardinality(a)",
    ),
    Function(
        "array_length",
        _length_type,
        _length_spark,
        lambda array, dimension: (len(array) or None) if dimension == 1 else None,
        "array_length(a, 1), array_upper(a, 1)",
    ),
    _function(
        "array_cat",
        _joined_type,
        _joined_spark,
        _joined,
        "a || b, array_cat(a, b), array_append(a, x), array_prepend(x, a)",
    ),
    _function("array_position", _position_type, _position_spark, _position, "array_position(a, x)"),
    _function("array_remove", _with_element, _remove_spark, _removed, "array_remove(a, x)"),
    _function(
        "array_to_string",
        _text_type,
        _text_spark,
        _text,
        "array_to_string(a, ','), array_to_string(a, ',', 'null')",
        note="Elements are of a type that can be cast to text; not of boolean.",
    ),
)


_OPERATORS = ("=", "<>", "<", "<=", ">", ">=")


def _quantified(comparison: Function, which: str) -> Function:
    """Return `x op ANY (array)` or `x op ALL (array)`: OR or AND of the comparisons."""

    def type_of(arguments: Sequence[Scalar]) -> Type | None:
        value, array = arguments
        if array.type.element is None:
            return None
        return comparison.type_of((value, Column("item", array.type.element)))

    def spark(arguments: Sequence[Expression], types: Sequence[Type], result: Type) -> Expression:
        element = types[1].element
        assert element is not None
        of_types = (types[0], element)

        def test(value: Expression, array: Expression) -> Expression:
            item_test = comparison.spark((value, variable("item")), of_types, result)
            return each("exists" if which == "any" else "forall", array, item_test)

        return let(arguments, test)

    def evaluate(value: Value, array: Array | None) -> Value:
        if array is None:
            return None
        decided = which == "any"
        tests = [
            None if value is None or item is None else comparison.evaluate(value, item)
            for item in array
        ]
        if decided in tests:
            return decided
        return None if None in tests else not decided

    # One row of the documentation stands for all of them.
    first = (comparison.name, which) == ("=", "any")
    syntax = "a = ANY (b), a <> ALL (b), a < ANY (b), …" if first else ""
    return Function(f"{comparison.name} {which}", type_of, spark, evaluate, syntax, strict=False)


def _both_type(arguments: Sequence[Scalar]) -> Type | None:
    left, right = (argument.type for argument in arguments)
    alike = left.kind == "array" and comparable(left, right, order=False)
    return BOOLEAN if alike else None


def _both_spark(name: str) -> Rendering:
    """Return `name` over the elements of the second array: whether each is one of the first's.

    NULL never is.
    """

    def test(left: Expression, right: Expression) -> Expression:
        equal = exp.EQ(this=variable("other"), expression=variable("item"))
        is_in_left = _is_true(each("exists", left, equal, "other"))
        return case(is_null(left), exp.Null(), each(name, right, is_in_left))

    def spark(arguments: Sequence[Expression], *_: object) -> Expression:
        return let(arguments, test)

    return spark


def _is_true(test: Expression) -> Expression:
    """Return the test, false where it is NULL."""
    return exp.Paren(this=exp.NullSafeEQ(this=test, expression=exp.Boolean(this=True)))


def _both(every: Callable[..., bool]) -> Callable[..., Value]:
    equal = next(function for function in COMPARISONS if function.name == "=").evaluate

    def evaluate(left: Array, right: Array) -> Value:
        present = [item for item in left if item is not None]
        return every(
            item is not None and any(equal(left_item, item) for left_item in present)
            for item in right
        )

    return evaluate


ARRAY_TESTS: tuple[Function, ...] = (
    *(
        _quantified(next(f for f in COMPARISONS if f.name == operator), quantifier)
        for operator in _OPERATORS
        for quantifier in ("any", "all")
    ),
    Function("@>", _both_type, _both_spark("forall"), _both(all), "a @> b, b <@ a"),
    Function("&&", _both_type, _both_spark("exists"), _both(any), "a && b"),
)
