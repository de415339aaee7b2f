"""The table of types.md, made from the one table of types."""

from __future__ import annotations

from headrace.functions.decimals import QUOTIENT
from headrace.types import KINDS, NUMERIC_SCALE, Type, array_of, numeric, result_numeric
from headrace.types.kinds import MAXIMUM_DIGITS, Kind

# What the conditions `Kind.misfit` say, in words; a kind without one has no entry.
MISFITS = {
    "numeric": "NaN, ±infinity, more digits than the stored type has",
    "date": "±infinity, years before 1 or after 9999",
    "timestamp": "±infinity, years before 1, from 9999-12-31 on",
    "timestamptz": "±infinity, before 0001-01-02 UTC, from 9999-12-31 UTC on",
    "interval": "±infinity",
    "array": "several dimensions, a first place other than 1, an element that does not fit",
}
COMPARISONS = {
    "ordered": "all",
    "equality": "`=`, `<>`, IN, GROUP BY",
    "none": "none: it is only carried along",
}
# Types with parameters are shown by an example.
SAMPLES: dict[str, tuple[tuple[str, Type], ...]] = {
    "numeric": (
        ("`numeric(12,2)`", numeric(12, 2)),
        ("`numeric`", result_numeric(MAXIMUM_DIGITS, NUMERIC_SCALE)),
        ("result of `/`, AVG", QUOTIENT),
    ),
    "character varying": (
        ("`varchar(10)`", Type("character varying", length=10)),
        ("`varchar`", Type("character varying")),
    ),
    "character": (("`char(3)`", Type("character", length=3)),),
    "enum": (("an enum `mood`", Type("enum", enum="mood")),),
    "array": (
        ("`text[]`", array_of(Type("text"))),
        ("`numeric(12,2)[]`", array_of(numeric(12, 2))),
    ),
}
TEXTS = ("text", "character varying", "character")


def types_table() -> str:
    """One row a type: PostgreSQL, Arrow, Spark, served, comparisons, what does not fit."""
    if set(MISFITS) != {kind.name for kind in KINDS if kind.misfit is not None}:
        raise ValueError("MISFITS does not name the kinds that have a misfit")
    headings = ("PostgreSQL", "Arrow", "Spark", "served as", "comparisons", "does not fit")
    lines = [headings, ("---",) * len(headings)]
    for kind in KINDS:
        samples = SAMPLES.get(kind.name) or ((f"`{kind.name}`", Type(kind.name)),)
        lines += [_row(kind, shown, type_) for shown, type_ in samples]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _row(kind: Kind, shown: str, type_: Type) -> tuple[str, ...]:
    comparison = COMPARISONS[type_.comparison]
    if kind.name in TEXTS:
        comparison = "all under collation C, else `=`, `<>`, IN, GROUP BY"
    misfit = "–" if type_.rounded else MISFITS.get(kind.name, "–")
    return shown, f"`{type_.arrow}`", f"`{type_.spark}`", f"`{type_.sql}`", comparison, misfit
