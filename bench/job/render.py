"""A query of the benchmark: tables, equalities and filters, written as SQL.

The equalities are those of the benchmark, with all that follow from others: whatever is the movie
of a row is equal to the movie of every other row, and the same for persons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from bench.job.schema import ALIASES, columns

# Columns that refer to a table of their own, by the name that the table has in queries.
OWN = {
    "k": "mk.keyword_id",
    "cn": "mc.company_id",
    "ct": "mc.company_type_id",
    "lt": "ml.link_type_id",
    "kt": "t.kind_id",
    "rt": "ci.role_id",
    "chn": "ci.person_role_id",
}


@dataclass(frozen=True)
class Family:
    """Queries of one join graph: `tables` are names with what they belong to, if that is said.

    `it1:mi` is the info type of `mi`, `cct1:subject` the subject of the complete cast. `joins`
    replaces the equalities that follow from the tables. `shown` are the columns whose least value
    is selected. A variant is its filters, beside those that all variants have.
    """

    tables: str
    shown: str
    variants: Sequence[Sequence[str]]
    always: Sequence[str] = ()
    joins: str | None = None


def base(alias: str) -> str:
    """Return an alias without its number."""
    return alias.rstrip("0123456789")


def equalities(family: Family) -> list[str]:
    """Return the equalities of a family, redundant ones included."""
    if family.joins is not None:
        return family.joins.split(", ")
    named = [name.partition(":")[::2] for name in family.tables.split()]
    aliases = [alias for alias, _ in named]
    result = []
    for alias, of in named:
        match base(alias):
            case "it":
                result.append(f"{alias}.id = {of}.info_type_id")
            case "cct":
                result.append(f"{alias}.id = cc.{of}_id")
            case own if own in OWN:
                result.append(f"{alias}.id = {OWN[own]}")
    for key, column in (("t", "movie_id"), ("n", "person_id")):
        same = [f"{key}.id"] if key in aliases else []
        same += [f"{a}.{column}" for a in aliases if column in columns(ALIASES[base(a)])]
        result += [f"{left} = {right}" for left, right in combinations(same, 2)]
    return result


def render(family: Family, filters: Sequence[str]) -> str:
    """Return the text of one variant."""
    aliases = [name.partition(":")[0] for name in family.tables.split()]
    tables = ", ".join(f"{ALIASES[base(alias)]} AS {alias}" for alias in aliases)
    shown = ", ".join(
        f"min({column}) AS {column.replace('.', '_')}" for column in family.shown.split()
    )
    conditions = [*family.always, *filters, *equalities(family)]
    return f"SELECT {shown}\nFROM {tables}\nWHERE " + "\n  AND ".join(conditions)


def queries(families: Sequence[Family]) -> dict[str, str]:
    """Return the text of every variant by its name: 1a, 1b, …, as j1a, j1b, …"""
    return {
        f"j{number}{letter}": render(family, filters)
        for number, family in enumerate(families, 1)
        for letter, filters in zip("abcdef", family.variants, strict=False)
    }
