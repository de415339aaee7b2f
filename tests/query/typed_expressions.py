"""Random expressions that are well typed, as text: most of them every engine accepts."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

COLUMNS: dict[str, tuple[str, ...]] = {
    "integer": ("o.id", "customer", "qty", "big", "c.id"),
    "numeric": ("amount", "tax"),
    "float": ("weight",),
    "text": ("note", "region", '"Name"'),
    "boolean": ("vip",),
    "date": ("d",),
    "timestamp": ("at",),
}
CONSTANTS: dict[str, tuple[str, ...]] = {
    "integer": ("0", "1", "-3", "7", "3000000000", "'5'::smallint"),
    "numeric": ("1.50", ".5", "2e2", "-0.001", "'3.25'::numeric(8,3)"),
    "float": ("1.5::float8", "'-2.5'::real", "2::float8"),
    "text": ("'x'::text", "'north'::varchar", "''::text", "'a b%'::text", "'\\'::text"),
    "boolean": ("true", "false", "NULL::boolean"),
    "date": ("DATE '2024-01-01'", "'2023-12-31'::date"),
    "timestamp": ("TIMESTAMP '2024-01-01 12:00'", "'2024-02-29'::timestamp"),
}
KINDS = tuple(COLUMNS)
NUMBERS = ("integer", "numeric", "float")


def expression(random: Random, kind: str, depth: int) -> str:
    """An expression of the kind, at most so deep."""
    if depth <= 0 or random.random() < 0.15:
        pool = COLUMNS if random.random() < 0.7 else CONSTANTS
        return random.choice(pool[kind])
    rule = random.choice([*_RULES[kind], _case, _coalesce, _nullif])
    return rule(random, kind, depth - 1)


def _case(random: Random, kind: str, depth: int) -> str:
    test = expression(random, "boolean", depth)
    a, b = (expression(random, kind, depth) for _ in range(2))
    return f"(CASE WHEN {test} THEN {a} ELSE {b} END)"


def _coalesce(random: Random, kind: str, depth: int) -> str:
    a, b = (expression(random, kind, depth) for _ in range(2))
    return f"coalesce({a}, {b})"


def _nullif(random: Random, kind: str, depth: int) -> str:
    a, b = (expression(random, kind, depth) for _ in range(2))
    return f"nullif({a}, {b})"


def _arithmetic(random: Random, kind: str, depth: int) -> str:
    other = kind if kind == "integer" else random.choice(NUMBERS[: NUMBERS.index(kind) + 1])
    sides = [expression(random, kind, depth), expression(random, other, depth)]
    random.shuffle(sides)
    sign = random.choice("+-*" if kind == "integer" else "+-*/")
    return f"({sides[0]} {sign} {sides[1]})"


def _sign(random: Random, kind: str, depth: int) -> str:
    return random.choice(("(- {})", "abs({})")).format(expression(random, kind, depth))


def _to_integer(random: Random, _: str, depth: int) -> str:
    value = expression(random, random.choice(("numeric", "float")), depth)
    if random.random() < 0.3:
        return f"length({expression(random, 'text', depth)})"
    return f"({value})::{random.choice(('integer', 'bigint'))}"


def _to_numeric(random: Random, _: str, depth: int) -> str:
    return f"({expression(random, 'integer', depth)})::numeric(14,{random.randint(0, 4)})"


def _to_float(random: Random, _: str, depth: int) -> str:
    return f"({expression(random, random.choice(NUMBERS[:2]), depth)})::float8"


def _to_text(random: Random, _: str, depth: int) -> str:
    kind = random.choice(("integer", "boolean", "date", "text"))
    length = random.choice(("text", "text", "varchar(3)")) if kind == "text" else "text"
    return f"({expression(random, kind, depth)})::{length}"


def _concatenation(random: Random, _: str, depth: int) -> str:
    return f"({expression(random, 'text', depth)} || {expression(random, 'text', depth)})"


def _to_date(random: Random, _: str, depth: int) -> str:
    return f"({expression(random, 'timestamp', depth)})::date"


def _to_timestamp(random: Random, _: str, depth: int) -> str:
    return f"({expression(random, 'date', depth)})::timestamp"


def _logic(random: Random, _: str, depth: int) -> str:
    a, b = (expression(random, "boolean", depth) for _ in range(2))
    return random.choice(("({} AND {})", "({} OR {})", "(NOT {1})")).format(a, b)


def _comparison(random: Random, _: str, depth: int) -> str:
    kind = random.choice(KINDS)
    other = random.choice(NUMBERS) if kind in NUMBERS else kind
    if kind in ("date", "timestamp"):
        other = random.choice(("date", "timestamp"))
    signs = ["=", "<>", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]
    if kind != "text":
        signs += ["<", "<=", ">", ">="]
    sign = random.choice(signs)
    return f"({expression(random, kind, depth)} {sign} {expression(random, other, depth)})"


def _test(random: Random, _: str, depth: int) -> str:
    kind = random.choice(KINDS)
    value = expression(random, kind, depth)
    forms = ["({} IS NULL)", "({} IS NOT NULL)"]
    if kind == "boolean":
        forms += ["({} IS TRUE)", "({} IS NOT FALSE)"]
    if kind == "text":
        forms += ["({} LIKE '%o%')", "({} NOT LIKE '_')", "({} IN ('x', 'north', NULL))"]
    if kind in NUMBERS:
        forms += ["({} IN (1, 2, 2.5))", "({} BETWEEN 0 AND 5)", "({} NOT BETWEEN 1 AND 2.5)"]
    return random.choice(forms).format(value)


def _called(*templates: tuple[str, str]) -> Callable[[Random, str, int], str]:
    """A rule of several calls: each template with the kinds of what goes into it, by letter."""
    letters = {kind[0]: kind for kind in KINDS if kind != "timestamp"} | {"m": "timestamp"}

    def rule(random: Random, _: str, depth: int) -> str:
        template, kinds = random.choice(templates)
        return template.format(*(expression(random, letters[kind], depth) for kind in kinds))

    return rule


_COUNTED_TEXTS = _called(
    ("strpos({}, {})", "tt"),
    ("ascii({})", "t"),
    ("({} - {})", "dd"),
    ("extract(year FROM {})::integer", "d"),
    ("extract(dow FROM {})::integer", "m"),
    ("num_nulls({}, {})", "tn"),
    ("greatest({}, {})", "ii"),
)
_ROUNDED = _called(
    ("round({}, 2)", "n"),
    ("trunc({}, 1)", "n"),
    ("floor({})", "n"),
    ("extract(epoch FROM {})", "m"),
    ("extract(second FROM {} - {})", "mm"),
)
_WHOLE_FLOATS = _called(
    ("floor({})", "f"), ("round({})", "f"), ("sign({})", "i"), ("date_part('doy', {})", "d")
)
_CUT_TEXTS = _called(
    ("left({}, ({})::integer % 5)", "ti"),
    ("right({}, 2)", "t"),
    ("substring({} FROM 2 FOR 3)", "t"),
    ("replace({}, 'o', {})", "tt"),
    ("lpad({}, 4, '*')", "t"),
    ("concat({}, {}, {})", "tib"),
    ("concat_ws('-', {}, {})", "td"),
    ("trim({})", "t"),
    ("split_part({}, ' ', 1)", "t"),
    ("to_char({}, 'YYYY-MM FMDD Mon')", "m"),
)
_MOVED_DATES = _called(("({} + 7)", "d"), ("({} - 400)", "d"))
_MOVED_MOMENTS = _called(
    ("({} + interval '1 month')", "d"),
    ("({} - interval '1 year 2 days 03:00')", "m"),
    ("date_trunc('month', {})", "m"),
    ("date_trunc('week', {})", "m"),
)
_MATCHED = _called(
    ("({} ~ '^[a-n]+')", "t"),
    ("({} SIMILAR TO '%(o|x)%')", "t"),
    ("starts_with({}, {})", "tt"),
    ("({} - {} < interval '2 days')", "mm"),
)

_RULES: dict[str, tuple[Callable[[Random, str, int], str], ...]] = {
    "integer": (_arithmetic, _arithmetic, _sign, _to_integer, _COUNTED_TEXTS),
    "numeric": (_arithmetic, _arithmetic, _sign, _to_numeric, _ROUNDED),
    "float": (_arithmetic, _arithmetic, _sign, _to_float, _WHOLE_FLOATS),
    "text": (_concatenation, _to_text, _CUT_TEXTS),
    "boolean": (_logic, _comparison, _comparison, _test, _MATCHED),
    "date": (_to_date, _MOVED_DATES),
    "timestamp": (_to_timestamp, _MOVED_MOMENTS),
}
