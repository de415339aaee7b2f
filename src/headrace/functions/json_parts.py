"""The parts of a JSON array or object on Spark, each as it stands in the text.

Spark's own functions read JSON into values and print these anew, which changes numbers (1.10) and
blanks. jsonb is stored as PostgreSQL prints it, so its parts are cut out of that text: at the
commas that stand in no string and in no inner bracket.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from headrace.functions.function import spark_function
from headrace.functions.let import let
from headrace.functions.spark import case, minus, number, plus, string

Expression = exp.Expression

# A quoted character, a mark, or what stands between marks: none needs a memory to be matched.
_TOKENS = r'(?s)\\.|["\[\]{},]|[^"\\\[\]{},]++'
_STRING = r'(?s)^"(?:\\.|[^"\\])*+"'
_STATE, _TOKEN = exp.to_identifier("state"), exp.to_identifier("token")


def spark_parts(text: Expression) -> Expression:
    """What stands between the outermost brackets, as an array of texts."""
    return let((text,), _parts)


def _parts(text: Expression) -> Expression:
    """Token by token: how deep it stands, whether in a string, and where the part began."""
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
    found = spark_function("aggregate", tokens, _struct(start), step, result)
    some = exp.GT(this=spark_function("length", text.copy()), expression=number(2))
    return case(some, found, exp.Null())


def _state(name: str) -> Expression:
    return exp.Column(this=exp.to_identifier(name), table=_STATE.copy())


def _is(*tokens: str) -> Expression:
    return exp.In(this=exp.Column(this=_TOKEN.copy()), expressions=[string(t) for t in tokens])


def _struct(fields: Mapping[str, Expression]) -> Expression:
    parts = (each for name, value in fields.items() for each in (string(name), value))
    return spark_function("named_struct", *parts)


def spark_key(member: Expression) -> Expression:
    """The key of an object's member, as a JSON string."""
    return spark_function("regexp_extract", member.copy(), string(_STRING), number(0))


def spark_value(member: Expression) -> Expression:
    """The value of an object's member, as a JSON text."""
    length = spark_function("length", spark_key(member))
    return spark_function("substring", member.copy(), plus(length, number(3)))


def spark_text(value: Expression) -> Expression:
    """A JSON text as SQL's text: a string without its quotes, null as NULL."""
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
