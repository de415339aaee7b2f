"""Pairs of numerics of every precision and scale, with values that differ in the last digit."""

from __future__ import annotations

import random
from collections.abc import Iterator
from decimal import Context, Decimal

from headrace.algebra.scalar import Value
from headrace.functions.numbers import as_numeric
from headrace.types import BIGINT, INTEGER, Type, numeric, plain_numeric

Row = tuple[Value, ...]
WIDE = Context(prec=120)
PLAIN = plain_numeric()
LIMITS = (
    PLAIN,
    BIGINT,
    INTEGER,
    numeric(38, 0),
    numeric(38, 2),
    numeric(38, 3),
    numeric(38, 10),
    numeric(38, 19),
    numeric(38, 20),
    numeric(38, 37),
    numeric(38, 38),
    numeric(30, 20),
    numeric(20, 0),
    numeric(19, 19),
    numeric(7, 2),
    numeric(1, 0),
    numeric(1, 1),
)


def pairs(count: int, seed: int) -> Iterator[tuple[Type, Type]]:
    """Pairs of the limits and of random digits, the same ones for a seed."""
    chance = random.Random(seed)
    while count:
        pair = (_type(chance), _type(chance))
        if any(type_.kind == "numeric" for type_ in pair):
            count -= 1
            yield pair


def _type(chance: random.Random) -> Type:
    if chance.random() < 0.5:
        return chance.choice(LIMITS)
    precision = chance.choice((chance.randint(1, 38), 38))
    return numeric(precision, chance.randint(0, precision))


def rows(left: Type, right: Type, seed: int) -> tuple[Row, ...]:
    """Equal values, neighbours, limits, halves of a digit, zeros and NULLs."""
    chance = random.Random(seed)
    first, second = as_numeric(left), as_numeric(right)
    step, other = _step(first), _step(second)
    found: list[tuple[Decimal | None, Decimal | None]] = [(None, None), (Decimal(0), Decimal(0))]
    for value in (_shared(first, second, chance) for _ in range(2)):
        for v in (value, WIDE.minus(value)):
            found += [
                (v, v),
                (v, WIDE.add(v, other)),
                (WIDE.subtract(v, step), v),
                (v, None),
                (None, v),
                (v, WIDE.add(v, WIDE.multiply(step, Decimal("0.5")))),
                (WIDE.subtract(v, WIDE.multiply(other, Decimal("0.5"))), v),
                (_largest(first), v),
                (v, WIDE.minus(_largest(second))),
            ]
    for sign in (1, -1):
        largest = (_largest(first) * sign, _largest(second) * sign)
        found += [largest, (largest[0], Decimal(0)), (step * sign, other * sign)]
    kept = [(x, y) for x, y in found if _fits(x, left) and _fits(y, right)]
    return tuple((_value(x, left), _value(y, right)) for x, y in dict.fromkeys(kept))


def _step(type_: Type) -> Decimal:
    return Decimal(1).scaleb(-(type_.scale or 0))


def _largest(type_: Type) -> Decimal:
    return Decimal("9" * (type_.precision or 0)).scaleb(-(type_.scale or 0), WIDE)


def _shared(left: Type, right: Type, chance: random.Random) -> Decimal:
    """A value that both types have, with as many digits as both have."""
    scale = min(left.scale or 0, right.scale or 0)
    whole = min((type_.precision or 0) - (type_.scale or 0) for type_ in (left, right))
    digits = "".join(chance.choice("0123456789") for _ in range(whole + scale))
    return Decimal(digits or "0").scaleb(-scale, WIDE)


def _fits(value: Decimal | None, type_: Type) -> bool:
    if value is None:
        return True
    if type_.is_integer:
        limit = {"integer": 2**31, "bigint": 2**63}[type_.kind]
        return value == WIDE.to_integral_value(value) and -limit <= value < limit
    exact = value == WIDE.quantize(value, _step(type_))
    return exact and abs(value) <= _largest(type_)


def _value(value: Decimal | None, type_: Type) -> Value:
    if value is None:
        return None
    return int(value) if type_.is_integer else WIDE.quantize(value, _step(type_))
