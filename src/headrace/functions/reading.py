"""Text read as a value: strictly, so that it can mean one thing only.

PostgreSQL reads more forms than these ('1_000', '0x1f', 'Jan 8 1999', 'today'). A text in another
form is an error here, never another value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal

from sqlglot import exp

from headrace.algebra.scalar import Value
from headrace.functions.errors import EvaluationError
from headrace.functions.function import spark_cast, spark_function
from headrace.functions.let import let
from headrace.functions.moments import stored_in_spark, stored_moment
from headrace.functions.numbers import fitted
from headrace.functions.spark import case, fails, string
from headrace.types import Type

Expression = exp.Expression

_DATE = r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?"
_NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)"
FORMS: Mapping[str, str] = {
    "boolean": "true|false|t|f|yes|no|y|n|on|off|1|0",
    "smallint": "[+-]?[0-9]+",
    "integer": "[+-]?[0-9]+",
    "bigint": "[+-]?[0-9]+",
    "numeric": _NUMBER,
    "double precision": rf"{_NUMBER}([eE][+-]?[0-9]{{1,2}})?",
    "date": _DATE,
    "timestamp": rf"{_DATE}( {_TIME})?",
    "uuid": "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
}
"""The text of each kind, blanks around it aside."""

_TRUE = "true|t|yes|y|on|1"


def readable(target: Type) -> bool:
    return target.kind in FORMS


def _form(target: Type) -> str:
    if target.kind == "numeric" and not target.declared:
        # Digits beyond the stored scale would be lost; PostgreSQL keeps them.
        return rf"[+-]?([0-9]+(\.[0-9]{{0,{target.scale}}}0*)?|\.[0-9]{{1,{target.scale}}}0*)"
    return FORMS[target.kind]


def spark_read(text: Expression, target: Type) -> Expression:
    """The text as a value of the type; an error in any other form."""

    def read(found: Expression) -> Expression:
        fits = spark_function("rlike", found.copy(), string(f"\\A({_form(target)})\\z"))
        missing = exp.Is(this=found.copy(), expression=exp.Null())
        return case(
            missing,
            spark_cast(exp.Null(), target),
            fits,
            _value(found.copy(), target),
            fails(f"a text cannot be read as {target.kind}"),
        )

    return let((exp.Trim(this=text, expression=string(" "), position="BOTH"),), read)


def _value(text: Expression, target: Type) -> Expression:
    if target.kind == "boolean":
        return spark_function("rlike", text, string(f"\\A({_TRUE})\\z"))
    if target.kind in ("date", "timestamp"):
        return stored_in_spark(spark_cast(text, target), target)
    return spark_cast(text, target)


def read(text: str, target: Type) -> Value:
    """The same on a Python value."""
    text = text.strip(" ")
    if not re.fullmatch(_form(target), text, re.ASCII):
        raise EvaluationError(f"a text cannot be read as {target.kind}")
    try:
        return _python(text, target)
    except ValueError:
        raise EvaluationError(f"a text cannot be read as {target.kind}") from None


def _python(text: str, target: Type) -> Value:
    match target.kind:
        case "boolean":
            return re.fullmatch(_TRUE, text) is not None
        case "numeric":
            return fitted(Decimal(text), target)
        case "double precision":
            return float(text)
        case "date":
            return date.fromisoformat(text)
        case "timestamp":
            whole, _, fraction = text.replace(" ", "T").partition(".")
            moment = datetime.fromisoformat(whole)
            return stored_moment(moment.replace(microsecond=int(fraction.ljust(6, "0") or 0)))
        case "uuid":
            return text
    return fitted(int(text), target)
