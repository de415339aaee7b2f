"""jsonb as rows. A jsonb value is stored as the text that PostgreSQL prints, which is canonical."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp

from headrace.algebra.scalar import Scalar, Value
from headrace.functions.errors import EvaluationError
from headrace.functions.function import spark_function
from headrace.functions.json_parts import spark_key, spark_parts, spark_text, spark_value
from headrace.functions.json_text import Number, parsed
from headrace.functions.spark import case, fails, number, string
from headrace.functions.table_function import Rows, TableFunction, Types, row
from headrace.types import Type, plain_text

Expression = exp.Expression

JSONB = Type("jsonb")
Spark = Callable[[Sequence[Expression], Sequence[Type], Types], Expression]
Evaluate = Callable[[Sequence[Value], Types], Rows]


def _printed(value: Any) -> str | None:
    """A value as `_text` functions give it."""
    return value if value is None or isinstance(value, str) else _canonical(value)


def _canonical(value: Any) -> str:
    match value:
        case Number():
            return str(value)
        case list():
            return f"[{', '.join(map(_canonical, value))}]"
        case dict():
            parts = (f"{_canonical(key)}: {_canonical(part)}" for key, part in value.items())
            return f"{{{', '.join(parts)}}}"
        case _:
            return json.dumps(value, ensure_ascii=False)


def _jsonb() -> Type:
    return JSONB


def _one_jsonb(*types: Callable[[], Type]) -> Callable[[Sequence[Scalar]], Types | None]:
    def types_of(arguments: Sequence[Scalar]) -> Types | None:
        return (
            tuple(each() for each in types)
            if [a.type.kind for a in arguments] == ["jsonb"]
            else None
        )

    return types_of


def _parts(text: Expression, opening: str, message: str) -> Expression:
    """The parts of an array or object; an error if the value is neither that nor NULL."""
    first = spark_function("substring", text.copy(), number(1), number(1))
    other = exp.NEQ(this=first, expression=string(opening))
    return case(other, fails(message), spark_parts(text))


def _each_part(parts: Expression, shown: Callable[[Expression], Expression]) -> Expression:
    part = exp.to_identifier("part")
    body = exp.Lambda(this=shown(exp.Column(this=part.copy())), expressions=[part])
    return spark_function("transform", parts, body)


def _expect(value: Any, type_: type, message: str) -> Any:
    if not isinstance(value, type_):
        raise EvaluationError(message)
    return value


_NO_ARRAY = "cannot extract elements from a value that is no array"
_NO_OBJECT = "cannot take members of a value that is no object"


def _elements(*, text: bool) -> Spark:
    def spark(arguments: Sequence[Expression], *_: object) -> Expression:
        parts = _parts(arguments[0], "[", _NO_ARRAY)
        return _each_part(parts, spark_text) if text else parts

    return spark


def _element_rows(*, text: bool) -> Evaluate:
    def rows(values: Sequence[Value], _: Types) -> Rows:
        shown = _printed if text else _canonical
        return [(shown(each),) for each in _expect(parsed(str(values[0])), list, _NO_ARRAY)]

    return rows


def _members(*, text: bool) -> Spark:
    def shown(member: Expression) -> Expression:
        value = spark_value(member)
        return row([spark_text(spark_key(member)), spark_text(value) if text else value])

    return lambda arguments, *_: _each_part(_parts(arguments[0], "{", _NO_OBJECT), shown)


def _member_rows(*, text: bool) -> Evaluate:
    def rows(values: Sequence[Value], _: Types) -> Rows:
        found = _expect(parsed(str(values[0])), dict, _NO_OBJECT)
        shown = _printed if text else _canonical
        return [(key, shown(each)) for key, each in found.items()]

    return rows


def _keys(arguments: Sequence[Expression], *_: object) -> Expression:
    parts = _parts(arguments[0], "{", _NO_OBJECT)
    return _each_part(parts, lambda member: spark_text(spark_key(member)))


def _key_rows(values: Sequence[Value], _: Types) -> Rows:
    return [(key,) for key in _expect(parsed(str(values[0])), dict, _NO_OBJECT)]


def _of_array(name: str, *, text: bool) -> TableFunction:
    return TableFunction(
        name,
        _one_jsonb(plain_text if text else _jsonb),
        _elements(text=text),
        _element_rows(text=text),
        f"{name}(a)",
        columns=("value",),
        raises=True,
    )


def _of_object(name: str, *, text: bool) -> TableFunction:
    return TableFunction(
        name,
        _one_jsonb(plain_text, plain_text if text else _jsonb),
        _members(text=text),
        _member_rows(text=text),
        f"{name}(a)",
        columns=("key", "value"),
        raises=True,
        unique=True,
    )


JSON_ROWS: tuple[TableFunction, ...] = (
    _of_array("jsonb_array_elements", text=False),
    _of_array("jsonb_array_elements_text", text=True),
    _of_object("jsonb_each", text=False),
    _of_object("jsonb_each_text", text=True),
    TableFunction(
        "jsonb_object_keys",
        _one_jsonb(plain_text),
        _keys,
        _key_rows,
        "jsonb_object_keys(a)",
        raises=True,
        unique=True,
    ),
)
