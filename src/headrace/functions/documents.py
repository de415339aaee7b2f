"""jsonb: the text at a constant path, the type of a document, the length of an array.

A jsonb is stored as PostgreSQL prints it. Spark returns the strings, whole numbers and truth values
in it unchanged, as `->>` does; but it prints objects, arrays and fractions in a form of its own.
Where the path leads to one of these, the text is an error, never another text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp

from headrace.algebra.scalar import Literal, Scalar
from headrace.functions.function import EvaluationError, Function, spark_function
from headrace.functions.spark import case, let, number, string, unless
from headrace.types import INTEGER, Type, plain_text


class Number(str):
    """A number as it is written."""

    @property
    def is_whole(self) -> bool:
        return self.lstrip("-").isdigit()


def parsed(text: str) -> Any:
    return json.loads(text, parse_int=Number, parse_float=Number)


Expression = exp.Expression

JSONB = Type("jsonb")
_NO_TEXT = "the text of an object, an array or a fraction inside a document"
_NO_ARRAY = "cannot get array length of a non-array"
# A document's type shows in its first character; anything else begins a number.
_TYPES = {"{": "object", "[": "array", '"': "string", "t": "boolean", "f": "boolean", "n": "null"}


def path_text(keys: Sequence[str]) -> str:
    """Return a path as the constant that a call carries."""
    return json.dumps(list(keys), ensure_ascii=False)


def _path_type(arguments: Sequence[Scalar]) -> Type | None:
    document, path = arguments
    if document.type != JSONB or not isinstance(path, Literal) or path.value is None:
        return None
    return plain_text()


def _schema(keys: Sequence[str], type_: str) -> str:
    for key in reversed(keys):
        quoted = key.replace("`", "``")
        type_ = f"STRUCT<`{quoted}`: {type_}>"
    return type_


def _at(document: Expression, keys: Sequence[str], type_: str) -> Expression:
    """Return the value at the keys, if it is of Spark's type; any can be read as STRING."""
    field: Expression = spark_function("from_json", document.copy(), string(_schema(keys, type_)))
    for key in keys:
        field = exp.Dot(this=field, expression=exp.to_identifier(key, quoted=True))
    return field


def _path_spark(arguments: Sequence[Expression], *_: object) -> Expression:
    document, path = arguments
    keys: list[str] = json.loads(path.name)

    def read(text: Expression) -> Expression:
        def present(type_: str) -> Expression:
            value = _at(text, keys, type_)
            return exp.Not(this=exp.Is(this=value, expression=exp.Null()))

        value = _at(text, keys, "STRING")
        fraction = spark_function("rlike", value.copy(), string("[.eE]"))
        rewritten = exp.or_(
            present("MAP<STRING, STRING>"),
            present("ARRAY<STRING>"),
            exp.and_(fraction, present("DOUBLE")),
        )
        is_object = spark_function("startswith", text.copy(), string("{"))
        return case(is_object, unless(rewritten, _NO_TEXT, value), exp.Null())

    return let((document,), read)


def _path(document: str, path: str) -> str | None:
    value = parsed(document)
    for key in json.loads(path):
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, (dict, list)) or (isinstance(value, Number) and not value.is_whole):
        raise EvaluationError(_NO_TEXT)
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)


def _of_document(result: Callable[[], Type]) -> Any:
    return lambda arguments: result() if [a.type for a in arguments] == [JSONB] else None


def _type_spark(arguments: Sequence[Expression], *_: object) -> Expression:
    def named(document: Expression) -> Expression:
        first = spark_function("left", document.copy(), number(1))
        parts: list[Expression] = [
            exp.Is(this=document.copy(), expression=exp.Null()),
            exp.Null(),
        ]
        for character, name in _TYPES.items():
            parts += [exp.EQ(this=first.copy(), expression=string(character)), string(name)]
        return case(*parts, string("number"))

    return let(arguments, named)


def _length_spark(arguments: Sequence[Expression], *_: object) -> Expression:
    def length(document: Expression) -> Expression:
        is_array = spark_function("startswith", document.copy(), string("["))
        count = spark_function("json_array_length", document.copy())
        return unless(exp.Not(this=is_array), _NO_ARRAY, count, document)

    return let(arguments, length)


def _length(document: str) -> int:
    value = parsed(document)
    if not isinstance(value, list):
        raise EvaluationError(_NO_ARRAY)
    return len(value)


DOCUMENTS: tuple[Function, ...] = (
    Function(
        "json text",
        _path_type,
        _path_spark,
        _path,
        "a ->> 'key', a -> 'key' ->> 'key', a #>> '{key}'",
        raises=True,
        note="Keys are constants. What stands there is a string, a whole number, a truth value or"
        " null; the text of an object, an array or a fraction is an error.",
    ),
    Function(
        "jsonb_typeof",
        _of_document(plain_text),
        _type_spark,
        lambda document: _TYPES.get(document[0], "number"),
        "jsonb_typeof(a)",
    ),
    Function(
        "jsonb_array_length",
        _of_document(lambda: INTEGER),
        _length_spark,
        _length,
        "jsonb_array_length(a)",
        raises=True,
    ),
)
