"""PostgreSQL's implicit conversions, made explicit, and constant expressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from headrace.algebra.scalar import Call, Literal, Scalar, walk
from headrace.functions import EvaluationError, call, cast, common_type, convert
from headrace.functions.logic import lossless
from headrace.functions.numbers import as_numeric, common_number, own_digits
from headrace.plan.evaluate import scalar as evaluate
from headrace.query.literals import Bound, Untyped, typed
from headrace.query.refusal import refuse, unmatched
from headrace.types import BIGINT, BOOLEAN, DOUBLE, Type, plain_text
from headrace.types.kinds import MOMENTS


def settled(bound: Bound) -> Scalar:
    """Return a scalar; a constant that met nothing to take a type from is text."""
    return typed(bound, plain_text()) if isinstance(bound, Untyped) else bound


def condition(bound: Bound, clause: str, node: exp.Expr) -> Scalar:
    """Return a boolean, as WHERE, AND, NOT and their like demand."""
    scalar = typed(bound, BOOLEAN) if isinstance(bound, Untyped) else bound
    if scalar.type != BOOLEAN:
        raise refuse(
            "invalid-query",
            f"argument of {clause} must be type boolean, not type {scalar.type.sql}",
            node,
        )
    return scalar


def operands(left: Bound, right: Bound) -> tuple[Scalar, Scalar]:
    """Return both sides of an operator: a constant without type takes the other side's."""
    if isinstance(left, Untyped) and isinstance(right, Untyped):
        return settled(left), settled(right)
    if isinstance(left, Untyped):
        assert not isinstance(right, Untyped)
        return typed(left, right.type), right
    if isinstance(right, Untyped):
        return left, typed(right, left.type)
    return left, right


def compared(left: Bound, right: Bound) -> tuple[Scalar, Scalar]:
    """Return both sides of a comparison, in types that compare alike in both engines."""
    first, second = operands(_compared_without_blanks(left), _compared_without_blanks(right))
    kinds = (first.type.kind, second.type.kind)
    if set(kinds) <= set(MOMENTS):
        return as_moments(first, second)
    if kinds == ("interval", "interval"):
        # A month equals 30 days and a day 24 hours, whatever is written.
        return call("interval value", first), call("interval value", second)
    # PostgreSQL compares char(n) with varchar as char, without trailing blanks, but with text as
    # text. A char is stored without its blanks; the varchar must lose them here.
    if kinds == ("character", "character varying"):
        return first, _without_blanks(second)
    if kinds == ("character varying", "character"):
        return _without_blanks(first), second
    return first, second


def as_moments(first: Scalar, second: Scalar) -> tuple[Scalar, Scalar]:
    """Return dates and timestamps in one type; a date is its midnight, a timestamp in UTC."""
    common = common_type([first.type, second.type])
    assert common is not None
    return cast(first, common), cast(second, common)


def first_of_nullif(left: Scalar, right: Scalar, node: exp.Expr, *, bare: bool) -> Scalar:
    """Return NULLIF's first argument in the type of its result: the type that `=` would take.

    | first, second | result |
    |---|---|
    | integer, numeric | numeric |
    | integer or numeric, float | double precision |
    | varchar, any text | text |
    | any others | the first's own |

    `bare` says that the second was a constant without a type.
    """
    common = common_number(left.type, right.type)
    if common is not None and left.type.kind != "real":
        if common.is_float:
            return cast(left, DOUBLE)
        return cast(left, as_numeric(left.type)) if common.kind == "numeric" else left
    kinds = (left.type.kind, right.type.kind)
    if kinds[0] == "character" and bare:
        return left
    if "character" in kinds and kinds != ("character", "character"):
        raise refuse(
            "unsupported-query",
            "NULLIF mixes char(n) with another type",
            node,
            "Cast the char(n) expression to text.",
        )
    if left.type.kind == "character varying":
        return cast(left, replace(left.type, kind="text", length=None))
    return left


def _compared_without_blanks(bound: Bound) -> Bound:
    keeps = not isinstance(bound, Untyped) and bound.type.keeps_blanks
    return _without_blanks(settled(bound)) if keeps else bound


def _without_blanks(scalar: Scalar) -> Scalar:
    return cast(scalar, Type("character", ordered=scalar.type.ordered))


def unified(bounds: Sequence[Bound], what: str, node: exp.Expr) -> tuple[Scalar, ...]:
    """Return the branches of CASE, COALESCE or an IN list in the one type PostgreSQL gives them."""
    common = common_to(bounds, what, node)
    return tuple(
        _brought(typed(bound, common) if isinstance(bound, Untyped) else bound, common)
        for bound in bounds
    )


def common_to(bounds: Sequence[Bound], what: str, node: exp.Expr) -> Type:
    """Return the one type that PostgreSQL gives to branches."""
    types = [bound.type for bound in bounds if not isinstance(bound, Untyped)]
    if any(type_.kind == "numeric" for type_ in types):
        types = [_with_own_room(bound) for bound in bounds if not isinstance(bound, Untyped)]
    common = common_type(types) if types else plain_text()
    if common is None:
        raise unmatched(types, what, node)
    if common.kind == "character":
        return _common_character(common, [b for b in bounds if isinstance(b, Untyped)])
    if len(types) < len(bounds):
        # A bare constant has no length and no digits of its own, so the result has none either.
        common = common.bare
    constants = [typed(bound, common) for bound in bounds if isinstance(bound, Untyped)]
    if common.kind in ("numeric", "array"):
        all_types = [*types, *(constant.type for constant in constants)]
        widest = common_type(all_types)
        literals = [bound for bound in (*bounds, *constants) if isinstance(bound, Literal)]
        if widest is None or not all(_holds(widest, literal) for literal in literals):
            raise unmatched(all_types, what, node)
        common = widest if not constants else widest.bare
    return common


def _with_own_room(scalar: Scalar) -> Type:
    """Return the type of a branch beside numerics.

    An integer constant needs the digits that it has.
    """
    if not isinstance(scalar, Literal) or not scalar.type.is_integer:
        return scalar.type
    return replace(as_numeric(scalar.type), room=own_digits(scalar).room)


def _holds(type_: Type, literal: Literal) -> bool:
    """Return whether the digits of a constant have room.

    An integer may have as many digits as its type has.
    """
    if literal.value is None:
        return True
    try:
        convert(literal.value, literal.type, type_)
    except EvaluationError:
        return False
    return True


def _common_character(common: Type, constants: Sequence[Untyped]) -> Type:
    """Return the type of char(n) beside bare constants, which are bpchar as they are written."""
    if not constants:
        return common
    padded = all(c.text is None or len(c.text) == common.length for c in constants)
    return replace(common, unsized=True, length=common.length if padded else None)


def as_type(bound: Bound, common: Type) -> Scalar:
    """Return a branch in exactly the common type."""
    if not isinstance(bound, Untyped):
        return cast(bound, common)
    literal = typed(bound, common)
    return replace(literal, type=common) if common.is_text else cast(literal, common)


def lossless_together(bounds: Sequence[Bound]) -> bool:
    """Return whether one type holds all of the values with all their digits."""
    types = [bound.type for bound in bounds if not isinstance(bound, Untyped)]
    number = next((type_ for type_ in types if type_.kind == "numeric"), None)
    if number is None or any(type_.is_float for type_ in types):
        # Beside a float all are floats.
        return True
    constants = (typed(bound, number).type for bound in bounds if isinstance(bound, Untyped))
    return lossless([*types, *constants])


def _brought(scalar: Scalar, common: Type) -> Scalar:
    """Return a branch cast where kind or digits differ; texts of one kind differ in length only."""
    if isinstance(scalar, Literal) and scalar.value is None:
        return replace(scalar, type=common)
    if common.keeps_blanks and scalar.type.kind == "character":
        return cast(scalar, common)
    if isinstance(scalar, Literal) and common.is_text:
        return replace(scalar, type=common)
    if common.is_text and scalar.type.kind == common.kind:
        return scalar
    return cast(scalar, common)


def folded(scalar: Scalar) -> Literal | None:
    """Return the value of an expression that reads nothing; None if it does."""
    if not all(isinstance(node, (Literal, Call)) for node in walk(scalar)):
        return None
    return Literal(evaluate(scalar, {}), scalar.type)


def constant(bound: Bound, what: str, node: exp.Expr, type_: Type | None = None) -> Literal:
    """Return a constant, refused where it is none; one without a type is read as `type_`."""
    scalar = typed(bound, type_) if isinstance(bound, Untyped) and type_ else settled(bound)
    try:
        literal = folded(scalar)
    except EvaluationError as error:
        raise refuse("invalid-query", f"{what}: {error}", node) from None
    if literal is None:
        raise refuse(
            "unsupported-query",
            f"{what} that is not a constant is not maintained",
            node,
            "Write it as a number.",
        )
    return literal


def whole_number(bound: Bound, what: str, node: exp.Expr) -> int | None:
    """Return a constant integer; None for NULL."""
    literal = constant(bound, what, node, BIGINT)
    if literal.value is None:
        return None
    if literal.type.is_number:
        # As an assignment to bigint: rounded.
        literal = folded(cast(literal, BIGINT)) or literal
    if not literal.type.is_integer:
        message = f"{what} must be an integer, not {literal.type.sql}"
        raise refuse("invalid-query", message, node)
    assert isinstance(literal.value, int)
    return literal.value
