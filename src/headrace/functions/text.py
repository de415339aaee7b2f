"""Text: concatenation and length, and the type of a text result."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.algebra.scalar import Literal, Scalar
from headrace.functions.function import Function, spark_function
from headrace.types import INTEGER, TEXT, Type


def all_text(arguments: Sequence[Scalar]) -> bool:
    return all(argument.type.is_text for argument in arguments)


def text_of(arguments: Sequence[Scalar]) -> Type:
    """Text with the collation that its text arguments agree on; a constant's gives way."""
    texts = [argument for argument in arguments if argument.type.is_text]
    deciding = [text for text in texts if not isinstance(text, Literal)] or texts
    return Type(
        TEXT.kind,
        ordered=all(text.type.ordered for text in deciding),
        folds=all(text.type.folds for text in deciding),
    )


def _concatenation_type(arguments: Sequence[Scalar]) -> Type | None:
    if all(argument.type.kind == "bytea" for argument in arguments):
        return Type("bytea")
    if not all_text(arguments):
        return None
    return Type(
        TEXT.kind,
        ordered=all(argument.type.ordered for argument in arguments),
        folds=text_of(arguments).folds,
    )


TEXTS: tuple[Function, ...] = (
    Function(
        "||",
        _concatenation_type,
        lambda a, *_: spark_function("concat", *a),
        lambda left, right: left + right,
        "a || b",
        note="One side may be of any type that can be cast to text.",
    ),
    # A bpchar whose values have blanks of their own, as LIKE and concat see it.
    Function(
        "with blanks",
        lambda a: text_of(a) if a[0].type.keeps_blanks else None,
        lambda a, *_: a[0],
        lambda text: text,
        "",
    ),
    Function(
        "length",
        lambda arguments: INTEGER if all_text(arguments) else None,
        lambda a, *_: spark_function("length", *a),
        len,
        "length(a), char_length(a), character_length(a)",
    ),
)
