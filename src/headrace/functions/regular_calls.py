"""Functions and operators that take a regular expression."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from sqlglot import exp

from headrace.algebra.scalar import Literal, Scalar, Value
from headrace.functions.function import Function, Rendering, spark_function
from headrace.functions.regular import Regular, understood
from headrace.functions.spark import string
from headrace.functions.text import all_text, text_of
from headrace.types import BOOLEAN, Type


def _read(pattern: Scalar) -> Regular | None:
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        return None
    return understood(pattern.value)


def _match_type(*, folding: bool) -> Callable[[Sequence[Scalar]], Type | None]:
    def type_of(arguments: Sequence[Scalar]) -> Type | None:
        text, pattern = arguments
        if not all_text(arguments) or text.type.kind == "character":
            return None
        read = _read(pattern)
        if read is None or ((folding or read.by_collation) and not text.type.folds):
            return None
        return BOOLEAN

    return type_of


def _of(pattern: object) -> Regular:
    read = understood(str(pattern))
    assert read is not None
    return read


def _match_spark(options: str) -> Rendering:
    def spark(arguments: Sequence[exp.Expression], *_: object) -> exp.Expression:
        text, pattern = arguments
        return spark_function("rlike", text, string(f"(?{options}){_of(pattern.name).java}"))

    return spark


def _match(flags: int) -> Callable[[Value, Value], Value]:
    def evaluate(text: Value, pattern: Value) -> Value:
        return re.search(_of(pattern).python, str(text), flags | re.DOTALL | re.ASCII) is not None

    return evaluate


def _replace_type(arguments: Sequence[Scalar]) -> Type | None:
    """Text, pattern, replacement and flags; see `Regular` for the patterns that are exact."""
    text, pattern, replacement, flags = arguments
    read = _read(pattern)
    if not all_text(arguments) or read is None or not read.unique or read.nothing:
        return None
    if read.by_collation and not text.type.folds:
        return None
    plain = isinstance(replacement, Literal) and "\\" not in str(replacement.value)
    known = isinstance(flags, Literal) and flags.value in ("", "g")
    return text_of((text,)) if plain and known else None


def _replace_spark(arguments: Sequence[exp.Expression], *_: object) -> exp.Expression:
    """Spark replaces every match; a prefix that is put back leaves it one only."""
    text, pattern, replacement, flags = arguments
    java, new = _of(pattern.name).java, replacement.name.replace("$", "\\$")
    if flags.name == "g":
        return spark_function("regexp_replace", text, string(f"(?s){java}"), string(new))
    first = string(f"(?s)\\A(.*?)(?:{java})")
    return spark_function("regexp_replace", text, first, string(f"$1{new}"))


def _replace(text: Value, pattern: Value, replacement: Value, flags: Value) -> Value:
    count = 0 if flags == "g" else 1
    found = re.compile(_of(pattern).python, re.DOTALL | re.ASCII)
    return found.sub(lambda _: str(replacement), str(text), count=count)


_PATTERN_NOTE = (
    "The pattern is a constant in the part of the syntax that PostgreSQL and Java read alike:"
    " characters, `.`, brackets, groups, alternatives, repetition, `^`, `$`, `\\d`, `\\w`, `\\s`."
)

REGULARS: tuple[Function, ...] = (
    Function(
        "~",
        _match_type(folding=False),
        _match_spark("s"),
        _match(0),
        "a ~ 'pattern', a !~ 'pattern', a [NOT] SIMILAR TO 'pattern', regexp_like(a, 'pattern')",
        note=_PATTERN_NOTE + " Classes of characters need collation C.",
    ),
    Function(
        "~*",
        _match_type(folding=True),
        _match_spark("si"),
        _match(re.IGNORECASE),
        "a ~* 'pattern', a !~* 'pattern', regexp_like(a, 'pattern', 'i')",
        note="Needs collation C.",
    ),
    Function(
        "regexp_replace",
        _replace_type,
        _replace_spark,
        _replace,
        "regexp_replace(a, 'pattern', 'new'), regexp_replace(a, 'pattern', 'new', 'g')",
        note="The pattern has no alternatives and at most one repeated character; the new text"
        " refers to no group.",
    ),
)
