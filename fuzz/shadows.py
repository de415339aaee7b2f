"""Functions and operators of a user that PostgreSQL prefers to the built-in ones of their name.

Their arguments are of the very types of some columns, to which the built-in ones are led by a cast
alone. Each does something else than the built-in one, so that whoever takes that is found out.
"""

from __future__ import annotations

import re
from random import Random

FUNCTIONS = (
    "lower(varchar) RETURNS text AS $$ SELECT upper($1::text) || '!' $$",
    "upper(varchar) RETURNS text AS $$ SELECT 'u'::text $$",
    "length(varchar) RETURNS int AS $$ SELECT 7 $$",
    "replace(varchar, text, text) RETURNS text AS $$ SELECT $2 || $3 $$",
    "abs(date) RETURNS int AS $$ SELECT 1 $$",
    "round(numeric, bigint) RETURNS numeric AS $$ SELECT 0.5 $$",
)
OPERATORS = (
    ("same_letters(varchar, varchar) RETURNS boolean"
     " AS $$ SELECT upper($1::text) = upper($2::text) $$",
     "= (LEFTARG = varchar, RIGHTARG = varchar, FUNCTION = same_letters, COMMUTATOR = =, HASHES)"),
    ("longer(varchar, varchar) RETURNS boolean"
     " AS $$ SELECT octet_length($1::text) > octet_length($2::text) $$",
     "< (LEFTARG = varchar, RIGHTARG = varchar, FUNCTION = longer)"),
    ("between_them(varchar, varchar) RETURNS text AS $$ SELECT $1::text || '+' || $2::text $$",
     "|| (LEFTARG = varchar, RIGHTARG = varchar, FUNCTION = between_them)"),
    ("far_below(int, numeric) RETURNS boolean AS $$ SELECT $1::numeric + 2 < $2 $$",
     "< (LEFTARG = int, RIGHTARG = numeric, FUNCTION = far_below)"),
    ("as_hundreds(numeric, int) RETURNS numeric AS $$ SELECT $1 + 100 * $2::numeric $$",
     "+ (LEFTARG = numeric, RIGHTARG = int, FUNCTION = as_hundreds)"),
)  # fmt: skip


def random_shadows(random: Random) -> tuple[str, ...]:
    """The statements that create some of them."""
    functions = random.sample(FUNCTIONS, random.randint(1, 3))
    operators = random.sample(OPERATORS, random.randint(0, 2))
    made = [f"CREATE FUNCTION {one} LANGUAGE sql IMMUTABLE" for one in functions]
    for function, operator in operators:
        made.append(f"CREATE FUNCTION {function} LANGUAGE sql IMMUTABLE STRICT")
        made.append(f"CREATE OPERATOR {operator}")
    return tuple(made)


def dropped(setup: tuple[str, ...]) -> tuple[str, ...]:
    """The statements that take the functions of a setup away, and the operators with them."""
    found = (re.match(r"CREATE FUNCTION (\w+\([^)]*\))", statement) for statement in setup)
    return tuple(f"DROP FUNCTION {one[1]} CASCADE" for one in found if one is not None)
