"""The tables of sql.md, made from the tables that the binder and the renderer use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from headrace.algebra.scalar import Column, Literal, Scalar
from headrace.functions import (
    AGGREGATES,
    FUNCTIONS,
    AggregateFunction,
    AggregateState,
    Function,
)
from headrace.functions.arrays import ARRAY_TESTS, ARRAYS
from headrace.functions.casts import castable
from headrace.functions.conditionals import CHOICES
from headrace.functions.documents import DOCUMENTS
from headrace.functions.fields import FIELDS
from headrace.functions.formats import FORMATS
from headrace.functions.intervals import INTERVALS
from headrace.functions.moments import MOMENTS, ZONES
from headrace.functions.numbers import NUMBERS
from headrace.functions.regular import REGULARS
from headrace.functions.rounding import ROUNDINGS
from headrace.functions.strings import STRINGS
from headrace.functions.tables import TABLE_FUNCTIONS
from headrace.functions.text import LIKES
from headrace.query.calls import REFUSED_CALLS
from headrace.query.clauses import MISPLACED, REFUSED_ARGUMENTS, REFUSED_NODES, Refused
from headrace.types import BOOLEAN, DOUBLE, KINDS, TEXT, Type, array_of, numeric

NUMBER_KINDS = ("smallint", "integer", "bigint", "real", "double precision", "numeric")
TEXT_KINDS = ("text", "character varying", "character")


def sql_blocks() -> Mapping[str, str]:
    """Every block of sql.md by its name."""
    return {
        "functions": functions(),
        "arithmetic": arithmetic(),
        "casts": casts(),
        "aggregates": aggregates(),
        "table functions": table_functions(),
        "constants": constants(),
        "refused clauses": refused_clauses(),
        "refused functions": refused_functions(),
    }


def sample(kind: str) -> Type:
    """A type of the kind, for asking which arguments a function takes."""
    match kind:
        case "numeric":
            return numeric(10, 2)
        case "character":
            return Type(kind, length=3)
        case "enum":
            return Type(kind, enum="mood")
        case "array":
            return array_of(TEXT)
    return Type(kind)


def functions() -> str:
    """What may stand in an expression: spelling, arguments, remarks."""
    rows = [
        (
            ", ".join(f"`{syntax}`" for syntax in _spellings(function.syntax)),
            _arguments(function),
            function.note or "–",
        )
        for function in FUNCTIONS
        if function.syntax
    ]
    return _table(("written", "on", "remarks"), rows)


def _spellings(syntax: str) -> Iterator[str]:
    """The alternatives of a syntax: commas inside parentheses and brackets separate arguments."""
    depth, current = 0, ""
    for character in syntax:
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            yield current.strip()
            current = ""
        else:
            current += character
    yield current.strip()


# What a family of functions takes, where the typing rules want several types or constants.
FAMILIES: tuple[tuple[Sequence[Function], str], ...] = (
    (ROUNDINGS, "numbers"),
    (CHOICES, "values of one type"),
    (STRINGS, "text"),
    (LIKES, "text"),
    (REGULARS, "text"),
    (MOMENTS, "dates, timestamps"),
    (INTERVALS, "interval"),
    ([field for field in FIELDS if field.name == "date_trunc"], "dates, timestamps"),
    (FIELDS, "dates, timestamps, intervals"),
    (FORMATS, "dates, timestamps"),
    (ZONES, "timestamps, integers"),
    (DOCUMENTS, "jsonb"),
    (ARRAYS, "arrays"),
    (ARRAY_TESTS, "arrays"),
)


def _arguments(function: Function) -> str:
    """The kinds that the function takes, asked of its own typing rule."""
    if function.name == "cast":
        return "see [casts](#casts)"
    for family, words in FAMILIES:
        if function in family:
            return words
    return _kinds([kind.name for kind in KINDS if _takes(function, sample(kind.name))])


def _takes(function: Function, type_: Type) -> bool:
    return any(function.type_of(arguments) is not None for arguments in _calls(function, type_))


def _calls(function: Function, type_: Type) -> list[Sequence[Scalar]]:
    """Argument lists of that type, in the shape that the function wants."""
    argument = Column("a", type_)
    match function.name:
        case "case":
            return [(Literal(True, BOOLEAN), argument, argument)]
        case "negate" | "abs" | "not" | "is null" | "length" | "square root":
            return [(argument,)]
    return [(argument, argument)]


def _kinds(names: Sequence[str]) -> str:
    """A list of kinds, with words for the usual families."""
    rest = list(names)
    if len(rest) == len(KINDS):
        return "all types"
    missing = [kind.name for kind in KINDS if kind.name not in rest]
    if len(missing) <= 2:
        return f"all types but {', '.join(missing)}"
    words = []
    for word, family in (("numbers", NUMBER_KINDS), ("text", TEXT_KINDS)):
        if set(family) <= set(rest):
            words.append(word)
            rest = [name for name in rest if name not in family]
    return ", ".join([*words, *rest])


def arithmetic() -> str:
    """The result's type of + and / for every pair of number types."""
    plus, over = (next(f for f in NUMBERS if f.name == name) for name in "+/")
    rows = []
    for left in NUMBER_KINDS:
        cells = []
        for right in NUMBER_KINDS:
            arguments = (Column("a", sample(left)), Column("b", sample(right)))
            kinds = [function.type_of(arguments) for function in (plus, over)]
            names = dict.fromkeys(type_.kind for type_ in kinds if type_ is not None)
            cells.append(", ".join(names))
        rows.append((f"**{left}**", *cells))
    return _table(("", *NUMBER_KINDS), rows)


def casts() -> str:
    """From every kind to the kinds it can be cast to."""
    rows = []
    for kind in KINDS:
        targets = [
            other.name
            for other in KINDS
            if other.name != kind.name and castable(sample(kind.name), sample(other.name))
        ]
        nothing = "an array of what its elements are cast to" if kind.name == "array" else "–"
        rows.append((kind.name, _kinds(targets) if targets else nothing))
    return _table(("from", "to"), rows)


def aggregates() -> str:
    """Every aggregate with its result's type by its argument's, and what becomes of a change."""
    rows = []
    for function in AGGREGATES:
        if not function.syntax:
            continue
        results: dict[str, list[str]] = {}
        added: list[str] = []
        for kind in KINDS:
            arguments = _aggregated(function, sample(kind.name))
            result = function.type_of(*(argument.type for argument in arguments))
            if result is not None:
                name = result.sql if result.element is None else "an array"
                results.setdefault(name, []).append(kind.name)
                added += [kind.name] * _is_added(function.states(*arguments))
        shown = "; ".join(f"{sql} of {_kinds(kinds)}" for sql, kinds in results.items())
        written = ", ".join(f"`{syntax}`" for syntax in _spellings(function.syntax))
        rows.append((written, shown, _kinds(added) or "–", function.note or "–"))
    return _table(("written", "result", "changes are added up", "remarks"), rows)


def _aggregated(function: AggregateFunction, type_: Type) -> list[Column]:
    """Arguments of that type, as the aggregate takes them."""
    if function.takes is not None and type_.is_number:
        type_ = function.takes
    if function.name == "string_agg" and type_.is_text:
        type_ = TEXT
    further = DOUBLE if function.order == "within" else type_
    return [Column("a", type_), *[Column("b", further)] * (function.arguments - 1)]


def _is_added(states: tuple[AggregateState, ...] | None) -> bool:
    """Whether a change is added to what is kept of a group; else the group is recomputed."""
    return states is not None and not any(
        state.kept == "sum" and state.term.type.is_float for state in states
    )


def table_functions() -> str:
    """The functions that may stand in FROM: spelling, remarks."""
    rows = [
        (", ".join(f"`{syntax}`" for syntax in _spellings(function.syntax)), function.note or "–")
        for function in TABLE_FUNCTIONS
    ]
    return _table(("written", "remarks"), rows)


def constants() -> str:
    """How a string that meets a type has to be written."""
    return _table(("type", "how a constant is written"), [(kind.name, kind.hint) for kind in KINDS])


def refused_clauses() -> str:
    misplaced = (refused for _, _, refused in MISPLACED)
    refused = (*REFUSED_NODES.values(), *REFUSED_ARGUMENTS.values(), *misplaced)
    return _refusals(dict.fromkeys(refused))


def refused_functions() -> str:
    rows: dict[Refused, list[str]] = {}
    for name, refused in REFUSED_CALLS.items():
        rows.setdefault(refused, []).append(f"`{name}`")
    return _table(
        ("functions", "why and what instead"),
        [(", ".join(names), refused.hint or "–") for refused, names in rows.items()],
    )


def _refusals(refused: Mapping[Refused, None]) -> str:
    rows = sorted((each.name, f"`{each.code}`", each.hint or "–") for each in refused)
    return _table(("construct", "code", "instead"), rows)


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    cells = (" | ".join(cell.replace("|", r"\|") for cell in line) for line in lines)
    return "\n".join(f"| {line} |" for line in cells)
