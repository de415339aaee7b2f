"""Values of every kind as PostgreSQL writes them: few, so that they meet each other often."""

from __future__ import annotations

import re
from decimal import Decimal
from random import Random

OBJECTS = ("'{}'", """'{"b": "x"}'""", """'{"a": 1, "b": "Ä"}'""", """'{"b": null}'""")
ARRAYS = ("'[]'", "'[1]'", """'[1, "a", null, 2.50]'""", """'["a", "a", true]'""")
TEXTS = ("", "a", "ab", "b", "B", "Ä")


def literal(random: Random, kind: str) -> str:
    """A literal whose type PostgreSQL sees by itself."""
    match kind:
        case "int":
            return _signed(str(random.randint(-1, 5))) if random.random() < 0.92 else "NULL::int"
        case "bigint":
            return _signed(str(random.randint(-1, 5))) + "::bigint"
        case "numeric":
            return _signed(f"{random.randint(-3, 6) * 75 / 100:.2f}")
        case "exact":
            return _signed(near(random, random.choice((0, 1, 2, 3, 10))))
        case "float":
            return _signed(f"{random.randint(-4, 8) / 4}") + "::float8"
        case "text":
            return f"('{random.choice(TEXTS)}'::text COLLATE \"C\")"
        case "char":
            return f"('{random.choice(('', 'a', 'ab', 'b'))}'::char(3) COLLATE \"C\")"
        case "bool":
            return random.choice(("true", "false"))
        case "date":
            return f"(DATE '2024-{random.randint(1, 3):02}-{random.choice((1, 15, 28)):02}')"
        case "timestamp":
            hour = random.choice((0, 12, 23))
            return f"(TIMESTAMP '2024-01-{random.randint(1, 4):02} {hour:02}:30:00')"
    raise ValueError(kind)


def _signed(number: str) -> str:
    """A cast binds stronger than a sign."""
    return f"({number})" if number.startswith("-") else number


def near(random: Random, scale: int, whole: int = 20) -> str:
    """One of few numbers, or its neighbour by the last of so many digits after the point."""
    base = Decimal(random.choice(("0", "1", "0.995", "-2.5", "1.005")))
    if whole > 10 and random.random() < 0.15:
        base += 10**9
    last = Decimal(1).scaleb(-scale) * random.choice((0, 0, 1, -1))
    return f"{base + last:f}"


def stored(random: Random, kind: str, nulls: float, declared: str = "") -> str:
    """A literal for a column of a table."""
    if random.random() < nulls:
        return "NULL"
    if kind == "int":
        return str(random.randint(0, 4))
    if kind == "exact":
        digits = re.fullmatch(r"numeric\((\d+),(\d+)\)", declared)
        precision, scale = (int(digits[1]), int(digits[2])) if digits else (38, 18)
        return near(random, scale, precision - scale)
    if kind == "float" and random.random() < 0.04:
        return random.choice(("'NaN'", "'Infinity'", "'-Infinity'"))
    if kind == "json":
        return random.choice(OBJECTS)
    if kind == "jsons":
        return random.choice(ARRAYS)
    if kind == "char":
        return f"'{random.choice(('', 'a', 'ab', 'b'))}'"
    return literal(random, kind)
