"""Functions of text that cut it, search it, fill it up and replace parts of it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp

from headrace.algebra.scalar import Literal, Scalar
from headrace.functions.function import (
    EvaluationError,
    Function,
    Rendering,
    Typing,
    spark_cast,
    spark_function,
)
from headrace.functions.spark import (
    at_least,
    case,
    let,
    long,
    minus,
    number,
    plus,
    short,
    string,
    unless,
)
from headrace.functions.text import all_text, text_of
from headrace.types import BIGINT, BOOLEAN, INTEGER, Type, plain_text

Expression = exp.Expression

_LEAST = -(2**31)
_SHORT = 1000
_NEGATIVE = "negative substring length not allowed"
_NO_CHARACTER = "requested character not valid for encoding"


def _on(texts: int, integers: int = 0, *, result: Callable[[], Type] | None = None) -> Typing:
    """Return the typing of so many texts, then so many integers; the result is text by default."""

    def type_of(arguments: Sequence[Scalar]) -> Type | None:
        first, rest = arguments[:texts], arguments[texts:]
        if not all_text(first) or any(a.type.kind not in ("smallint", "integer") for a in rest):
            return None
        if len(arguments) != texts + integers:
            return None
        return text_of(first) if result is None else result()

    return type_of


def _renamed(name: str) -> Rendering:
    return lambda arguments, *_: spark_function(name, *arguments)


def _below(left: Expression, right: Expression) -> Expression:
    return exp.LT(this=left, expression=right)


def _substring_spark(arguments: Sequence[Expression], *_: object) -> Expression:
    """Return the text from `start` to before `start + length`; starts below 1 are cut to 1."""

    def cut(text: Expression, start: Expression, length: Expression) -> Expression:
        first = at_least(long(start), 1)
        end = at_least(plus(long(start.copy()), long(length)), 1)
        taken = spark_function("substring", text, short(first), short(minus(end, first.copy())))
        negative = _below(length.copy(), number(0))
        return unless(negative, _NEGATIVE, taken, text, start)

    return let(arguments, cut)


def _substring(text: str, start: int, length: int) -> str:
    if length < 0:
        raise EvaluationError(_NEGATIVE)
    end = max(start + length, 1)
    return text[max(start, 1) - 1 : end - 1]


def _substring_type(arguments: Sequence[Scalar]) -> Type | None:
    """Return the type of a substring; a constant of type bigint stands for "to the end"."""
    text, start, length = arguments
    endless = isinstance(length, Literal) and length.type == BIGINT
    return _on(1, 1)((text, start)) if endless else _on(1, 2)(arguments)


def _left_spark(arguments: Sequence[Expression], *_: object) -> Expression:
    def cut(text: Expression, count: Expression) -> Expression:
        rest = at_least(plus(spark_function("length", text.copy()), count.copy()), 0)
        return spark_function(
            "left", text, case(_below(count.copy(), number(0)), rest, count.copy())
        )

    return let(arguments, cut)


def _left(text: str, count: int) -> str:
    return text[:count] if count >= 0 else text[: max(len(text) + count, 0)]


def _right_spark(arguments: Sequence[Expression], *_: object) -> Expression:
    def cut(text: Expression, count: Expression) -> Expression:
        length = long(spark_function("length", text.copy()))
        skipped = at_least(minus(length, long(count.copy())), 0)
        negative = exp.Neg(this=exp.Paren(this=long(count.copy())))
        # PostgreSQL negates the least integer to itself, and cuts nothing.
        least = exp.EQ(this=count.copy(), expression=spark_cast(string(str(_LEAST)), INTEGER))
        first = case(least, number(0), _below(count.copy(), number(0)), negative, skipped)
        return spark_function("substring", text, short(plus(first, number(1))))

    return let(arguments, cut)


def _right(text: str, count: int) -> str:
    if count == _LEAST:
        return text
    return text[max(len(text) - count, 0) :] if count >= 0 else text[-count:]


def _trim_spark(side: str) -> Rendering:
    def spark(arguments: Sequence[Expression], *_: object) -> Expression:
        text, characters = arguments
        return exp.Trim(this=text, expression=characters, position=side)

    return spark


def _padded(side: Callable[[str, str], str]) -> Callable[[str, int, str], str]:
    def evaluate(text: str, length: int, fill: str) -> str:
        if len(text) >= length or not fill:
            return text[: max(length, 0)]
        missing = length - len(text)
        return side(text, (fill * (missing // len(fill) + 1))[:missing])

    return evaluate


def _split_part(text: str, separator: str, n: int) -> str:
    if n == 0:
        raise EvaluationError("field position must not be zero")
    parts = text.split(separator) if separator else [text]
    index = n - 1 if n > 0 else len(parts) + n
    return parts[index] if 0 <= index < len(parts) else ""


def _translate(text: str, old: str, new: str) -> str:
    table: dict[str, str] = {}
    for i, character in enumerate(old):
        table.setdefault(character, new[i] if i < len(new) else "")
    return "".join(table.get(character, character) for character in text)


def _chr_spark(arguments: Sequence[Expression], *_: object) -> Expression:
    """Return the code point's four bytes, read as UTF-32."""

    def character(code: Expression) -> Expression:
        digits = spark_function("lpad", spark_function("hex", code), number(8), string("0"))
        text = spark_function("decode", spark_function("unhex", digits), string("UTF-32"))
        valid = exp.And(
            this=exp.Between(this=code.copy(), low=number(1), high=number(0x10FFFF)),
            expression=exp.Not(
                this=exp.Between(this=code.copy(), low=number(0xD800), high=number(0xDFFF))
            ),
        )
        invalid = exp.Not(this=exp.Paren(this=valid))
        return unless(invalid, _NO_CHARACTER, text)

    return let(arguments, character)


def _chr(code: int) -> str:
    if not 1 <= code <= 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise EvaluationError(_NO_CHARACTER)
    return chr(code)


def _chr_type(arguments: Sequence[Scalar]) -> Type | None:
    (code,) = arguments
    return plain_text() if code.type.kind in ("smallint", "integer") else None


def _encode_type(arguments: Sequence[Scalar]) -> Type | None:
    value, format_ = arguments
    hexadecimal = isinstance(format_, Literal) and format_.value == "hex"
    return plain_text() if hexadecimal and value.type.kind == "bytea" else None


def _constant(place: int, low: int, high: int) -> Callable[[Sequence[Scalar]], bool]:
    """Return the test that the argument at the place is a constant within the bounds.

    Of such constants the function is safe.
    """

    def safe(arguments: Sequence[Scalar]) -> bool:
        argument = arguments[place]
        value = argument.value if isinstance(argument, Literal) else None
        return isinstance(value, int) and low <= value <= high

    return safe


def _all_texts(arguments: Sequence[Scalar]) -> Type | None:
    """Return text for one text or more, none of them char(n), whose blanks count here."""
    if not all_text(arguments) or any(a.type.kind == "character" for a in arguments):
        return None
    return text_of(arguments) if arguments else None


def _concat_ws(separator: Any, *texts: Any) -> Any:
    if separator is None:
        return None
    return separator.join(text for text in texts if text is not None)


_LOWER = "abcdefghijklmnopqrstuvwxyz"
_UPPER = _LOWER.upper()


def lowered(text: str) -> str:
    """Return the text with small letters for capital ones of ASCII."""
    return text.translate(str.maketrans(_UPPER, _LOWER))


_LENGTH_NOTE = "Lengths and positions count characters."

STRINGS: tuple[Function, ...] = (
    Function(
        "substring",
        _substring_type,
        _substring_spark,
        _substring,
        "substring(a FROM b FOR c), substring(a, b, c), substr(a, b, c)",
        raises=True,
        note=_LENGTH_NOTE,
        safe=_constant(2, 0, 2**33),
    ),
    Function("left", _on(1, 1), _left_spark, _left, "left(a, n)"),
    Function("right", _on(1, 1), _right_spark, _right, "right(a, n)"),
    Function(
        "btrim",
        _on(2),
        _trim_spark("BOTH"),
        lambda a, b: a.strip(b) if b else a,
        "trim(a), trim(BOTH b FROM a), btrim(a, b)",
    ),
    Function(
        "ltrim",
        _on(2),
        _trim_spark("LEADING"),
        lambda a, b: a.lstrip(b) if b else a,
        "trim(LEADING b FROM a), ltrim(a, b)",
    ),
    Function(
        "rtrim",
        _on(2),
        _trim_spark("TRAILING"),
        lambda a, b: a.rstrip(b) if b else a,
        "trim(TRAILING b FROM a), rtrim(a, b)",
    ),
    Function(
        "replace",
        _on(3),
        _renamed("replace"),
        lambda a, b, c: a.replace(b, c) if b else a,
        "replace(a, b, c)",
    ),
    Function(
        "strpos",
        _on(2, result=lambda: INTEGER),
        _renamed("instr"),
        lambda a, b: a.find(b) + 1,
        "strpos(a, b), position(b IN a)",
    ),
    Function(
        "lpad",
        lambda a: _on(2, 1)((a[0], a[2], a[1])),
        _renamed("lpad"),
        _padded(lambda text, fill: fill + text),
        "lpad(a, n), lpad(a, n, b)",
        raises=True,
        safe=_constant(1, 0, _SHORT),
    ),
    Function(
        "rpad",
        lambda a: _on(2, 1)((a[0], a[2], a[1])),
        _renamed("rpad"),
        _padded(lambda text, fill: text + fill),
        "rpad(a, n), rpad(a, n, b)",
        raises=True,
        safe=_constant(1, 0, _SHORT),
    ),
    Function(
        "repeat",
        _on(1, 1),
        _renamed("repeat"),
        lambda a, n: a * max(n, 0),
        "repeat(a, n)",
        raises=True,
        safe=_constant(1, 0, _SHORT),
    ),
    Function("reverse", _on(1), _renamed("reverse"), lambda a: a[::-1], "reverse(a)"),
    Function(
        "split_part",
        _on(2, 1),
        _renamed("split_part"),
        _split_part,
        "split_part(a, b, n)",
        raises=True,
        safe=_constant(2, 1, 2**31),
    ),
    Function(
        "starts_with",
        _on(2, result=lambda: BOOLEAN),
        _renamed("startswith"),
        lambda a, b: a.startswith(b),
        "starts_with(a, b), a ^@ b",
    ),
    Function("translate", _on(3), _renamed("translate"), _translate, "translate(a, b, c)"),
    Function(
        "ascii",
        _on(1, result=lambda: INTEGER),
        _renamed("ascii"),
        lambda a: ord(a[0]) if a else 0,
        "ascii(a)",
    ),
    Function("chr", _chr_type, _chr_spark, _chr, "chr(n)", raises=True),
    Function(
        "md5",
        _on(1, result=plain_text),
        _renamed("md5"),
        lambda a: hashlib.md5(a.encode(), usedforsecurity=False).hexdigest(),
        "md5(a)",
    ),
    Function(
        "octet_length",
        lambda a: INTEGER if _all_texts(a) is not None or a[0].type.kind == "bytea" else None,
        _renamed("octet_length"),
        lambda a: len(a if isinstance(a, bytes) else a.encode()),
        "octet_length(a)",
    ),
    Function(
        "encode",
        _encode_type,
        lambda a, *_: spark_function("lower", spark_function("hex", a[0])),
        lambda value, _: value.hex(),
        "encode(bytea, 'hex')",
    ),
    Function(
        "concat",
        _all_texts,
        lambda a, *_: spark_function("concat_ws", string(""), *a),
        lambda *texts: "".join(text for text in texts if text is not None),
        "concat(a, b, …)",
        strict=False,
        note="Of any types that can be cast to text; a NULL counts as nothing.",
    ),
    Function(
        "concat_ws",
        _all_texts,
        _renamed("concat_ws"),
        _concat_ws,
        "concat_ws(separator, a, b, …)",
        strict=False,
    ),
    Function(
        "upper",
        lambda a: _on(1)(a) if a[0].type.folds else None,
        lambda a, *_: spark_function("translate", a[0], string(_LOWER), string(_UPPER)),
        lambda a: a.translate(str.maketrans(_LOWER, _UPPER)),
        "upper(a)",
        note="Needs collation C, where it changes ASCII letters only.",
    ),
    Function(
        "lower",
        lambda a: _on(1)(a) if a[0].type.folds else None,
        lambda a, *_: spark_function("translate", a[0], string(_UPPER), string(_LOWER)),
        lowered,
        "lower(a)",
        note="Needs collation C, where it changes ASCII letters only.",
    ),
)
