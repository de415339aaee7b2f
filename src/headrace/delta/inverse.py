"""Expressions that can be solved for the column that they are computed from.

    k - 1 = v     k = v + 1
    1 - k = v     k = 1 - v
    d + 7 = v     d = v - 7

So rows whose computed key is among some values are found by a plain column. Numbers that no column
can hold come out as NULL, and equal nothing; a wider integer is compared by its value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

from headrace.algebra.scalar import Call, Column, Literal, Scalar
from headrace.functions import call
from headrace.types import BIGINT


@dataclass(frozen=True)
class Inverse:
    """The value of `column` for a value of the expression: itself, or one of these.

    | how | expression | column |
    |---|---|---|
    | plus | column - amount | value + amount |
    | minus | column + amount | value - amount |
    | from | amount - column | amount - value |
    | days plus | column - amount days | value + amount days |
    | days minus | column + amount days | value - amount days |
    """

    column: Column
    how: OneOf["plain", "plus", "minus", "from", "days plus", "days minus"] = "plain"
    amount: Literal | None = None

    @property
    def is_plain(self) -> bool:
        return self.how == "plain"

    def of(self, value: Scalar) -> Scalar:
        """The column's value, as an expression; NULL where no column could have it."""
        if self.amount is None:
            return value
        match self.how:
            case "plus":
                return call("try bigint +", value, self.amount)
            case "minus":
                return call("try bigint -", value, self.amount)
            case "from":
                return call("try bigint -", self.amount, value)
            case "days plus":
                return call("try date +", value, self.amount)
            case _:
                return call("try date -", value, self.amount)


def inverse_of(scalar: Scalar) -> Inverse | None:
    """How a column follows from the expression's value, None if it does not."""
    match scalar:
        case Column():
            return Inverse(scalar)
        case Call(function="cast", arguments=(Column() as column,)):
            whole = column.type.is_integer and scalar.type == BIGINT
            return Inverse(column) if whole else None
        case Call(function=name, arguments=(Column() as column, Literal() as amount)):
            if amount.value is None:
                return None
            match name:
                case "try integer -" | "try bigint -":
                    return Inverse(column, "plus", _wide(amount))
                case "try integer +" | "try bigint +":
                    return Inverse(column, "minus", _wide(amount))
                case "try date -":
                    return Inverse(column, "days plus", amount)
                case "try date +":
                    return Inverse(column, "days minus", amount)
        case Call(function=name, arguments=(Literal() as amount, Column() as column)):
            if amount.value is None:
                return None
            match name:
                case "try integer -" | "try bigint -":
                    return Inverse(column, "from", _wide(amount))
                case "try integer +" | "try bigint +":
                    return Inverse(column, "minus", _wide(amount))
    return None


def _wide(amount: Literal) -> Literal:
    return Literal(amount.value, BIGINT)
