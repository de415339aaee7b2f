"""jsonb as rows, and the parts of a document on Spark.

Spark's own functions read JSON into values and print these again, which changes numbers (1.10) and
blanks. jsonb is stored as PostgreSQL prints it, so its parts are cut out of that text: at the
commas that stand in no string and in no inner bracket.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlglot import exp

from headrace.algebra.scalar import Scalar, Value
from headrace.functions.documents import Number, parsed
from headrace.functions.function import EvaluationError, spark_function
from headrace.functions.spark import case, fails, let, minus, number, plus, string
from headrace.functions.table_function import Rows, TableFunction, Types, row
from headrace.types import Type, plain_text

Expression = exp.Expression

# An escaped character, a mark, or the text between marks: no match backtracks.
_TOKENS = r'(?s)\\.|["\[\]{},]|[^"\\\[\]{},]++'
_STRING = r'(?s)^"(?:\\.|[^"\\])*+"'
_STATE, _TOKEN = exp.to_identifier("state"), exp.to_identifier("token")


def spark_parts(text: Expression) -> Expression:
    """Return the parts between the outermost brackets, as an array of texts."""
    return let((text,), _parts)


def _parts(text: Expression) -> Expression:
    """Return the parts, by a fold over the tokens.

    The fold's state has the depth, whether a token is in a string, and where the part began.
    """
    nothing = spark_function("array", string(""))
    start: dict[str, Expression] = {
        "depth": number(0),
        "quoted": exp.false(),
        "at": number(1),
        "start": number(2),
        "parts": spark_function("slice", nothing, number(1), number(0)),
    }
    quoted, depth, at, parts = (_state(name) for name in ("quoted", "depth", "at", "parts"))
    outside = exp.Not(this=quoted.copy())
    ends = exp.and_(
        outside, exp.EQ(this=depth.copy(), expression=number(1)), _is(",", "]", "}"), copy=True
    )
    part = spark_function(
        "substring", text.copy(), _state("start"), minus(at.copy(), _state("start"))
    )
    after: dict[str, Expression] = {
        "depth": case(
            quoted.copy(),
            depth.copy(),
            _is("[", "{"),
            plus(depth.copy(), number(1)),
            _is("]", "}"),
            minus(depth.copy(), number(1)),
            depth.copy(),
        ),
        "quoted": exp.NEQ(this=quoted.copy(), expression=exp.Paren(this=_is('"'))),
        "at": plus(at.copy(), spark_function("length", exp.Column(this=_TOKEN.copy()))),
        # A comma is followed by a blank.
        "start": case(ends, plus(at.copy(), number(2)), _state("start")),
        "parts": case(
            ends.copy(), spark_function("array_append", parts.copy(), part), parts.copy()
        ),
    }
    tokens = spark_function("regexp_extract_all", text.copy(), string(_TOKENS), number(0))
    step = exp.Lambda(this=_struct(after), expressions=[_STATE.copy(), _TOKEN.copy()])
    result = exp.Lambda(this=parts, expressions=[_STATE.copy()])
    tokens_state = spark_function("aggregate", tokens, _struct(start), step, result)
    some = exp.GT(this=spark_function("length", text.copy()), expression=number(2))
    return case(some, tokens_state, exp.Null())


def _state(name: str) -> Expression:
    return exp.Column(this=exp.to_identifier(name), table=_STATE.copy())


def _is(*tokens: str) -> Expression:
    return exp.In(this=exp.Column(this=_TOKEN.copy()), expressions=[string(t) for t in tokens])


def _struct(fields: Mapping[str, Expression]) -> Expression:
    parts = (each for name, value in fields.items() for each in (string(name), value))
    return spark_function("named_struct", *parts)


def spark_key(member: Expression) -> Expression:
    """Return the key of an object's member, as a JSON string."""
    return spark_function("regexp_extract", member.copy(), string(_STRING), number(0))


def spark_value(member: Expression) -> Expression:
    """Return the value of an object's member, as a JSON text."""
    length = spark_function("length", spark_key(member))
    return spark_function("substring", member.copy(), plus(length, number(3)))


def spark_text(value: Expression) -> Expression:
    """Return a JSON text as SQL's text: a string without its quotes, null as NULL."""
    whole = spark_function("concat", string("["), value.copy(), string("]"))
    mode = spark_function("map", string("mode"), string("FAILFAST"))
    read = spark_function("from_json", whole, string("ARRAY<STRING>"), mode)
    first = spark_function("substring", value.copy(), number(1), number(1))
    return case(
        exp.EQ(this=first, expression=string('"')),
        spark_function("element_at", read, number(1)),
        exp.EQ(this=value.copy(), expression=string("null")),
        exp.Null(),
        value.copy(),
    )


JSONB = Type("jsonb")
Spark = Callable[[Sequence[Expression], Sequence[Type], Types], Expression]
Evaluate = Callable[[Sequence[Value], Types], Rows]


def _printed(value: Any) -> str | None:
    """Return a value as `_text` functions give it."""
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


def _parts_of(text: Expression, opening: str, message: str) -> Expression:
    """Return the parts of an array or object; an error if the value is neither that nor NULL."""
    first = spark_function("substring", text.copy(), number(1), number(1))
    mismatch = exp.NEQ(this=first, expression=string(opening))
    return case(mismatch, fails(message), spark_parts(text))


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
        parts = _parts_of(arguments[0], "[", _NO_ARRAY)
        return _each_part(parts, spark_text) if text else parts

    return spark


def _element_rows(*, text: bool) -> Evaluate:
    def rows(values: Sequence[Value], _: Types) -> Rows:
        to_text = _printed if text else _canonical
        return [(to_text(each),) for each in _expect(parsed(str(values[0])), list, _NO_ARRAY)]

    return rows


def _members(*, text: bool) -> Spark:
    def member_row(member: Expression) -> Expression:
        value = spark_value(member)
        return row([spark_text(spark_key(member)), spark_text(value) if text else value])

    return lambda arguments, *_: _each_part(_parts_of(arguments[0], "{", _NO_OBJECT), member_row)


def _member_rows(*, text: bool) -> Evaluate:
    def rows(values: Sequence[Value], _: Types) -> Rows:
        members = _expect(parsed(str(values[0])), dict, _NO_OBJECT)
        to_text = _printed if text else _canonical
        return [(key, to_text(each)) for key, each in members.items()]

    return rows


def _keys(arguments: Sequence[Expression], *_: object) -> Expression:
    parts = _parts_of(arguments[0], "{", _NO_OBJECT)
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
