"""Three-valued logic, tests for NULL, and the conditional expressions."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from headrace.algebra.scalar import Call, Scalar, Value
from headrace.functions.comparison import COMPARISONS, comparable
from headrace.functions.decimals import common_decimal, digits_before_point
from headrace.functions.function import Function, spark_binary, spark_cast, spark_function
from headrace.functions.numbers import as_numeric, common_number
from headrace.functions.spark import let
from headrace.types import BOOLEAN, Type, array_of, result_numeric
from headrace.types.kinds import MAXIMUM_DIGITS, MOMENTS

_ANY_NUMERIC = result_numeric(1, 0)


def common_type(types: Sequence[Type]) -> Type | None:
    """Return the type that the branches of CASE, COALESCE and the like are brought to.

    Return None if there is none, or if it is a numeric that a column has too many digits for.
    """
    if any(type_.is_float for type_ in types):
        # Beside a float the digits of numerics do not count.
        types = [_ANY_NUMERIC if type_.kind == "numeric" else type_ for type_ in types]
    elif _are_numerics(types) and len(set(types)) > 1:
        return common_decimal([as_numeric(type_) for type_ in types])
    common = types[0]
    for type_ in types[1:]:
        if type_ == common:
            continue
        if common.is_number and type_.is_number:
            common = _common_number(common, type_)
        elif common.is_text and type_.is_text:
            # The first one's type, without a length if kind or length differ.
            alike = (common.kind, common.length) == (type_.kind, type_.length)
            length = common.length if alike else None
            ordered = common.ordered and type_.ordered
            folds = common.folds and type_.folds
            unsized = common.kind == "character" and (
                length is None or common.unsized or type_.unsized
            )
            common = Type(common.kind, length=length, ordered=ordered, folds=folds, unsized=unsized)
        elif common.is_moment and type_.is_moment:
            common = max(common, type_, key=lambda each: MOMENTS.index(each.kind))
        elif common.element is not None and type_.element is not None:
            element = common_type([common.element, type_.element])
            if element is None:
                return None
            common = array_of(element)
        elif common.kind != type_.kind or common.enum != type_.enum:
            return None
    return common


def _are_numerics(types: Sequence[Type]) -> bool:
    """Return whether all are exact numbers, and not integers alone."""
    exact = all(type_.is_number and not type_.is_float for type_ in types)
    return exact and any(type_.kind == "numeric" for type_ in types)


def _common_number(left: Type, right: Type) -> Type:
    """Return the type as for operators, but a real beside an integer or numeric stays real."""
    for first, second in ((left, right), (right, left)):
        if first.kind == "real" and not second.is_float:
            return first
    number = common_number(left, right)
    assert number is not None
    return number


def lossless(types: Sequence[Type]) -> bool:
    """Return whether one decimal holds all digits of all numerics among the types."""
    if not any(type_.kind == "numeric" for type_ in types):
        return True
    exact = [as_numeric(type_) for type_ in types if not type_.is_float and type_.is_number]
    whole, scale = max(map(digits_before_point, exact)), max(type_.scale or 0 for type_ in exact)
    return whole + scale <= MAXIMUM_DIGITS


def chain(name: str, terms: Sequence[Scalar]) -> Scalar:
    """Return the terms joined by AND or OR in their order, as a tree of least depth."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return Call(name, (chain(name, terms[:half]), chain(name, terms[half:])), BOOLEAN)


def _all_boolean(arguments: Sequence[Scalar]) -> Type | None:
    return BOOLEAN if all(argument.type == BOOLEAN for argument in arguments) else None


def _and(left: Value, right: Value) -> Value:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _or(left: Value, right: Value) -> Value:
    if left is True or right is True:
        return True
    return None if left is None or right is None else False


def _case_type(arguments: Sequence[Scalar]) -> Type | None:
    """Return the type of CASE with arguments condition, value, condition, value, …, else."""
    conditions, values = arguments[:-1:2], (*arguments[1::2], arguments[-1])
    if any(condition.type != BOOLEAN for condition in conditions):
        return None
    return common_type([value.type for value in values])


def _case_spark(
    arguments: Sequence[exp.Expression], _: Sequence[Type], result: Type
) -> exp.Expression:
    branches = zip(arguments[:-1:2], arguments[1::2], strict=True)
    return exp.Case(
        ifs=[exp.If(this=test, true=spark_cast(value, result)) for test, value in branches],
        default=spark_cast(arguments[-1], result),
    )


def _coalesce_type(arguments: Sequence[Scalar]) -> Type | None:
    return common_type([argument.type for argument in arguments])


def _nullif_type(arguments: Sequence[Scalar]) -> Type | None:
    left, right = arguments
    return left.type if comparable(left.type, right.type, order=False) else None


def _nullif_spark(
    arguments: Sequence[exp.Expression], types: Sequence[Type], _: Type
) -> exp.Expression:
    def unless_equal(left: exp.Expression, right: exp.Expression) -> exp.Expression:
        equal = EQUAL.spark((left.copy(), right), types, BOOLEAN)
        return exp.Case(ifs=[exp.If(this=equal, true=exp.Null())], default=left)

    return let(arguments, unless_equal)


def _nullif(left: Value, right: Value) -> Value:
    if left is None or right is None:
        return left
    return None if EQUAL.evaluate(left, right) else left


def _in_type(arguments: Sequence[Scalar]) -> Type | None:
    """Return BOOLEAN if all arguments can be compared as one type, else None.

    So no item is compared otherwise than its neighbour.
    """
    first, *items = arguments
    alike = all(comparable(first.type, item.type, order=False) for item in items)
    if not items or not alike or not lossless([argument.type for argument in arguments]):
        return None
    return BOOLEAN


def _in_spark(arguments: Sequence[exp.Expression], *_: object) -> exp.Expression:
    first, *items = arguments
    return exp.Paren(this=exp.In(this=first, expressions=items))


def _in(value: Value, *items: Value) -> Value:
    if value is None:
        return None
    present = [item for item in items if item is not None]
    if any(EQUAL.evaluate(value, item) for item in present):
        return True
    return False if len(present) == len(items) else None


EQUAL = next(function for function in COMPARISONS if function.name == "=")

LOGIC: tuple[Function, ...] = (
    Function(
        "and",
        _all_boolean,
        lambda a, *_: spark_binary(exp.And, *a),
        _and,
        "a AND b",
        strict=False,
    ),
    Function(
        "or",
        _all_boolean,
        lambda a, *_: spark_binary(exp.Or, *a),
        _or,
        "a OR b",
        strict=False,
    ),
    Function(
        "not",
        _all_boolean,
        lambda a, *_: exp.Paren(this=exp.Not(this=exp.Paren(this=a[0]))),
        lambda a: not a,
        "NOT a",
    ),
    Function(
        "is null",
        lambda _: BOOLEAN,
        lambda a, *_: exp.Paren(this=exp.Is(this=a[0], expression=exp.Null())),
        lambda a: a is None,
        "a IS [NOT] NULL",
        strict=False,
    ),
    # `case` is evaluated branch by branch, so that a guarded branch is never reached.
    Function(
        "case",
        _case_type,
        _case_spark,
        lambda *_: None,
        "CASE WHEN c THEN a … ELSE b END, CASE x WHEN y THEN a … END",
        strict=False,
        note="A branch is evaluated only where its condition holds.",
    ),
    Function(
        "coalesce",
        _coalesce_type,
        lambda a, _, result: spark_function("coalesce", *(spark_cast(x, result) for x in a)),
        lambda *_: None,
        "coalesce(a, b, …)",
        strict=False,
    ),
    Function("in", _in_type, _in_spark, _in, "a [NOT] IN (b, c, …)", strict=False),
    Function("nullif", _nullif_type, _nullif_spark, _nullif, "nullif(a, b)", strict=False),
)
LAZY = frozenset({"case", "coalesce"})
