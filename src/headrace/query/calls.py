"""Calls by the names users write, and why others are refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from headrace.algebra.scalar import Literal
from headrace.query.clauses import CLOCK, SESSION, Refused
from headrace.query.refusal import refuse
from headrace.types import BIGINT, INTEGER, TEXT, Type

Arguments = list[Any]


def _trim(node: exp.Expr) -> tuple[str, Arguments]:
    side = node.args.get("position") or "BOTH"
    name = {"BOTH": "btrim", "LEADING": "ltrim", "TRAILING": "rtrim"}[str(side).upper()]
    return name, [node.this, node.args.get("expression")]


def _extract(node: exp.Expr) -> tuple[str, Arguments]:
    field = exp.Literal.string(node.this.name)
    return "extract", [field, node.args["expression"]]


_READ: Mapping[type[exp.Expr], Callable[[exp.Expr], tuple[str, Arguments]]] = {
    exp.Substring: lambda n: ("substring", [n.this, n.args.get("start"), n.args.get("length")]),
    exp.Trim: _trim,
    exp.StrPosition: lambda n: ("position", [n.this, n.args["substr"]]),
    exp.Extract: _extract,
    exp.AtTimeZone: lambda n: ("timezone", [n.args["zone"], n.this]),
    exp.StartsWith: lambda n: ("starts_with", [n.this, n.args["expression"]]),
    exp.Sqrt: lambda n: ("sqrt", [n.this]),
}
KEYWORD_CALLS = tuple(_READ)
_OPERATORS = (exp.StartsWith, exp.Sqrt)


def keyword_call(node: exp.Expr) -> tuple[str, list[exp.Expr]]:
    """Return the function that the node calls, and its arguments in their order."""
    name, arguments = _READ[type(node)](node)
    return name, [argument for argument in arguments if argument is not None]


def column_name(node: exp.Expr) -> str | None:
    """Return the name that PostgreSQL gives to an unnamed column of the call."""
    return None if isinstance(node, _OPERATORS) else keyword_call(node)[0]


@dataclass(frozen=True)
class NamedFunction:
    """A row of `headrace.functions.FUNCTIONS` that is called by a name.

    `parameters` are the types that constants without a type take; `defaults` stand for the last
    arguments where they are left out. Text among both has the database's collation.
    """

    row: str
    parameters: tuple[Type, ...]
    defaults: tuple[Literal, ...] = ()


_TEXT, _INTEGER = TEXT, INTEGER
_BLANK = Literal(" ", TEXT)
_TO_THE_END = Literal(2**33, BIGINT)

CALLABLE: dict[str, NamedFunction] = {
    "ascii": NamedFunction("ascii", (_TEXT,)),
    "btrim": NamedFunction("btrim", (_TEXT, _TEXT), (_BLANK,)),
    "char_length": NamedFunction("length", (_TEXT,)),
    "character_length": NamedFunction("length", (_TEXT,)),
    "chr": NamedFunction("chr", (_INTEGER,)),
    "encode": NamedFunction("encode", (Type("bytea"), _TEXT)),
    "left": NamedFunction("left", (_TEXT, _INTEGER)),
    "lpad": NamedFunction("lpad", (_TEXT, _INTEGER, _TEXT), (_BLANK,)),
    "ltrim": NamedFunction("ltrim", (_TEXT, _TEXT), (_BLANK,)),
    "make_date": NamedFunction("make_date", (_INTEGER,) * 3),
    "md5": NamedFunction("md5", (_TEXT,)),
    "position": NamedFunction("strpos", (_TEXT, _TEXT)),
    "regexp_replace": NamedFunction("regexp_replace", (_TEXT,) * 4, (Literal("", TEXT),)),
    "repeat": NamedFunction("repeat", (_TEXT, _INTEGER)),
    "replace": NamedFunction("replace", (_TEXT, _TEXT, _TEXT)),
    "reverse": NamedFunction("reverse", (_TEXT,)),
    "right": NamedFunction("right", (_TEXT, _INTEGER)),
    "rpad": NamedFunction("rpad", (_TEXT, _INTEGER, _TEXT), (_BLANK,)),
    "rtrim": NamedFunction("rtrim", (_TEXT, _TEXT), (_BLANK,)),
    "split_part": NamedFunction("split_part", (_TEXT, _TEXT, _INTEGER)),
    "starts_with": NamedFunction("starts_with", (_TEXT, _TEXT)),
    "strpos": NamedFunction("strpos", (_TEXT, _TEXT)),
    "substr": NamedFunction("substring", (_TEXT, _INTEGER, _INTEGER), (_TO_THE_END,)),
    "substring": NamedFunction("substring", (_TEXT, _INTEGER, _INTEGER), (_TO_THE_END,)),
    "translate": NamedFunction("translate", (_TEXT, _TEXT, _TEXT)),
}

VOLATILE = Refused(
    "a volatile function",
    "Its result changes without any change of the data. Store the value in the source table.",
    "unsupported-function",
)
AGGREGATE = Refused(
    "this aggregate",
    "See docs/sql.md for the aggregates that are maintained; string_agg and array_agg gather.",
    "unsupported-function",
)
UNKNOWN = Refused(
    "this function",
    "See docs/sql.md for the functions and operators that are maintained.",
    "unsupported-function",
)
LIBRARY = Refused(
    "a function of the C library",
    "Its last digit depends on the machine. Compute it when you read the stream table.",
    "unsupported-function",
)
REGULAR = Refused(
    "the form with a regular expression",
    "Write substring(text FROM start FOR count) with numbers.",
    "unsupported-function",
)
REFUSED_CALLS: dict[str, Refused] = {
    **dict.fromkeys(
        (
            *("acos", "asin", "atan", "atan2", "cbrt", "cos", "exp", "ln", "log", "log10", "pow"),
            *("power", "sin", "sinh", "tan", "tanh"),
        ),
        LIBRARY,
    ),
    **dict.fromkeys(
        (
            "clock_timestamp",
            "now",
            "statement_timestamp",
            "timeofday",
            "transaction_timestamp",
        ),
        CLOCK,
    ),
    **dict.fromkeys(
        (
            "current_database",
            "current_setting",
            "inet_client_addr",
            "pg_backend_pid",
            "version",
        ),
        SESSION,
    ),
    **dict.fromkeys(
        (
            "currval",
            "gen_random_uuid",
            "lastval",
            "nextval",
            "pg_sleep",
            "random",
            "random_normal",
            "setseed",
            "setval",
            "txid_current",
            "uuidv4",
            "uuidv7",
        ),
        VOLATILE,
    ),
    **dict.fromkeys(
        (
            "json_agg",
            "json_object_agg",
            "jsonb_agg",
            "jsonb_object_agg",
            "range_agg",
            "range_intersect_agg",
            "xmlagg",
        ),
        AGGREGATE,
    ),
    "any_value": Refused(
        "a value that PostgreSQL may choose freely",
        "Write min(…) or max(…).",
        "unsupported-function",
    ),
}


def refuse_call(name: str, node: exp.Expr, because: Refused | None = None) -> Exception:
    """Return the error for a function that is not maintained, with the reason if it is known."""
    refused = because or REFUSED_CALLS.get(name, UNKNOWN)
    return refuse(refused.code, f"{name}: {refused.name} is not maintained", node, refused.hint)
