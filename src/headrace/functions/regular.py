r"""Regular expressions that PostgreSQL and Java read alike, and the functions that take them.

A pattern is a constant of plain syntax:

| taken | as |
|---|---|
| characters, `.`, `[abc]`, `[^a-z]`, `\.` | themselves; `.` matches a line's end too |
| `^`, `$` | the text's begin and end, never a line's |
| `\d \w \s \D \W \S`, `[[:alpha:]]` … | ASCII only, as under collation C |
| `( )`, `(?: )`, `\|`, `* + ? {m,n}`, each also lazy | whether there is a match |

Other syntax of PostgreSQL (back references, lookaround, embedded options, class names of other
scripts) is refused. *Which* text matches is another question: PostgreSQL takes the longest match,
Java the first. They agree where at most one part of the pattern is repeated and there are no
alternatives; replacing needs that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from headrace.algebra.scalar import Literal, Scalar, Value
from headrace.functions.function import Function, Rendering, spark_function
from headrace.functions.spark import string
from headrace.functions.text import all_text, quoted, text_of
from headrace.types import BOOLEAN, Type

_CLASSES = {"alpha": "a-zA-Z", "digit": "0-9", "alnum": "a-zA-Z0-9", "space": r" \t\n\x0B\f\r"}
_ESCAPES = frozenset("dwsDWS")
_QUANTIFIER = re.compile(r"(?:[*+?]|\{([0-9]{1,3})(?:,([0-9]{0,3}))?\})(\??)")
_MOST_REPETITIONS = 255


@dataclass(frozen=True)
class Regular:
    """A pattern that was understood: its text for Java, and what it is made of.

    `by_collation` says that its meaning depends on the collation, `unique` that no engine can
    choose between matches, `nothing` that it may match no character at all.
    """

    java: str
    by_collation: bool
    unique: bool
    nothing: bool

    @property
    def python(self) -> str:
        return self.java.replace("\\z", "\\Z")


class _Refused(ValueError):
    pass


def parse_pattern(pattern: str) -> Regular | None:
    """Return the pattern, or None if both engines are not known to read it alike."""
    try:
        return _Reader(pattern).read()
    except _Refused:
        return None


class _Reader:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.by_collation = False
        self.choices = 0
        self.needed = 0

    def read(self) -> Regular:
        if self.pattern.startswith("***"):
            raise _Refused
        java = self._alternatives(inside=False)
        unique = self.choices <= 1
        return Regular(java, self.by_collation, unique, nothing=not self.needed)

    def _peek(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def _next(self) -> str:
        character = self._peek()
        if not character:
            raise _Refused
        self.at += 1
        return character

    def _alternatives(self, *, inside: bool) -> str:
        parts: list[str] = []
        while (character := self._peek()) and not (inside and character == ")"):
            if character == "|":
                self.at += 1
                self.choices += 2
                parts.append("|")
            else:
                parts.append(self._piece())
        return "".join(parts)

    def _piece(self) -> str:
        character = self._next()
        if character in "^$":
            if _QUANTIFIER.match(self.pattern, self.at):
                raise _Refused
            return "\\A" if character == "^" else "\\z"
        needed = self.needed
        atom = self._atom(character)
        single = character != "("
        quantifier = _QUANTIFIER.match(self.pattern, self.at)
        if quantifier is None:
            self.needed += single
            return atom
        self.at = quantifier.end()
        if _QUANTIFIER.match(self.pattern, self.at):
            raise _Refused
        low, high, lazy = quantifier.groups()
        if any(int(bound) > _MOST_REPETITIONS for bound in (low, high) if bound):
            raise _Refused
        if low and high and int(low) > int(high):
            raise _Refused
        # A lazy or repeated group may end in several places; a repeated character in one.
        self.choices += 1 if single and not lazy else 2
        if quantifier[0][0] in "*?" or (low is not None and int(low) == 0):
            self.needed = needed
        else:
            self.needed += single
        return atom + quantifier[0]

    def _atom(self, character: str) -> str:
        match character:
            case ".":
                return "."
            case "[":
                return self._bracket()
            case "(":
                return self._group()
            case "\\":
                return self._escape()
            case "*" | "+" | "?" | "{" | ")":
                raise _Refused
        return quoted(character)

    def _group(self) -> str:
        if self._peek() == "?":
            if self.pattern[self.at : self.at + 2] != "?:":
                raise _Refused
            self.at += 2
        inner = self._alternatives(inside=True)
        if self._next() != ")":
            raise _Refused
        return f"(?:{inner})"

    def _escape(self) -> str:
        character = self._next()
        if character in _ESCAPES:
            self.by_collation = True
            return "\\" + character
        if character.isalnum() or not character.isascii():
            raise _Refused
        return quoted(character)

    def _bracket(self) -> str:
        """Return `[…]` of characters, ranges within digits or one case, and named classes."""
        parts: list[str] = []
        if self._peek() == "^":
            self.at += 1
            parts.append("^")
        empty = True
        while (character := self._next()) != "]" or empty:
            empty = False
            if character == "[":
                parts.append(self._class())
            elif character == "\\":
                parts.append(self._escape())
            elif self._peek() == "-" and self.pattern[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                last = self._next()
                if not _is_range(character, last):
                    raise _Refused
                parts.append(f"{character}-{last}")
            else:
                parts.append(quoted(character))
        return "[" + "".join(parts) + "]"

    def _class(self) -> str:
        class_match = re.compile(r":([a-z]+):\]").match(self.pattern, self.at)
        if class_match is None or class_match[1] not in _CLASSES:
            raise _Refused
        self.at = class_match.end()
        self.by_collation = True
        return _CLASSES[class_match[1]]


def _is_range(first: str, last: str) -> bool:
    families = (str.isdigit, str.islower, str.isupper)
    alike = any(family(first) and family(last) for family in families)
    return first.isascii() and last.isascii() and alike and first <= last


def from_similar(pattern: str) -> str | None:
    """Return a pattern of SIMILAR TO as the regular expression that it means, or None."""
    parts, inside, characters = [], False, iter(pattern)
    for character in characters:
        if character == "\\":
            escaped = next(characters, None)
            # Outside of brackets, an escaped double quote separates parts of the pattern.
            if escaped is None or escaped.isalnum() or (escaped == '"' and not inside):
                return None
            parts.append("\\" + escaped)
        elif inside:
            inside = character != "]"
            parts.append(character)
        elif character == "[":
            inside = True
            parts.append(character)
        else:
            parts.append({"%": ".*", "_": "."}.get(character) or _plain(character))
    return "^(?:" + "".join(parts) + ")$"


def _plain(character: str) -> str:
    return "\\" + character if character in ".^$" else character


def _read(pattern: Scalar) -> Regular | None:
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        return None
    return parse_pattern(pattern.value)


def _match_type(*, folding: bool) -> Callable[[Sequence[Scalar]], Type | None]:
    def type_of(arguments: Sequence[Scalar]) -> Type | None:
        text, pattern = arguments
        if not all_text(arguments) or text.type.kind == "character":
            return None
        read = _read(pattern)
        if read is None or ((folding or read.by_collation) and not text.type.folds):
            return None
        return BOOLEAN

    return type_of


def _of(pattern: object) -> Regular:
    read = parse_pattern(str(pattern))
    assert read is not None
    return read


def _match_spark(options: str) -> Rendering:
    def spark(arguments: Sequence[exp.Expression], *_: object) -> exp.Expression:
        text, pattern = arguments
        return spark_function("rlike", text, string(f"(?{options}){_of(pattern.name).java}"))

    return spark


def _match(flags: int) -> Callable[[Value, Value], Value]:
    def evaluate(text: Value, pattern: Value) -> Value:
        return re.search(_of(pattern).python, str(text), flags | re.DOTALL | re.ASCII) is not None

    return evaluate


def _replace_type(arguments: Sequence[Scalar]) -> Type | None:
    """Return the type for a text, pattern, replacement and flags.

    `Regular` says which patterns are exact.
    """
    text, pattern, replacement, flags = arguments
    read = _read(pattern)
    if not all_text(arguments) or read is None or not read.unique or read.nothing:
        return None
    if read.by_collation and not text.type.folds:
        return None
    plain = isinstance(replacement, Literal) and "\\" not in str(replacement.value)
    supported = isinstance(flags, Literal) and flags.value in ("", "g")
    return text_of((text,)) if plain and supported else None


def _replace_spark(arguments: Sequence[exp.Expression], *_: object) -> exp.Expression:
    """Return the replacement of the first match, or with the flag g of all.

    Spark replaces every match; a pattern with the text's begin, which is put back, has only one.
    """
    text, pattern, replacement, flags = arguments
    java, new = _of(pattern.name).java, replacement.name.replace("$", "\\$")
    if flags.name == "g":
        return spark_function("regexp_replace", text, string(f"(?s){java}"), string(new))
    first = string(f"(?s)\\A(.*?)(?:{java})")
    return spark_function("regexp_replace", text, first, string(f"$1{new}"))


def _replace(text: Value, pattern: Value, replacement: Value, flags: Value) -> Value:
    count = 0 if flags == "g" else 1
    compiled = re.compile(_of(pattern).python, re.DOTALL | re.ASCII)
    return compiled.sub(lambda _: str(replacement), str(text), count=count)


_PATTERN_NOTE = (
    "The pattern is a constant in the part of the syntax that PostgreSQL and Java read alike:"
    " characters, `.`, brackets, groups, alternatives, repetition, `^`, `$`, `\\d`, `\\w`, `\\s`."
)

REGULARS: tuple[Function, ...] = (
    Function(
        "~",
        _match_type(folding=False),
        _match_spark("s"),
        _match(0),
        "a ~ 'pattern', a !~ 'pattern', a [NOT] SIMILAR TO 'pattern', regexp_like(a, 'pattern')",
        note=_PATTERN_NOTE + " Classes of characters need collation C.",
    ),
    Function(
        "~*",
        _match_type(folding=True),
        _match_spark("si"),
        _match(re.IGNORECASE),
        "a ~* 'pattern', a !~* 'pattern', regexp_like(a, 'pattern', 'i')",
        note="Needs collation C.",
    ),
    Function(
        "regexp_replace",
        _replace_type,
        _replace_spark,
        _replace,
        "regexp_replace(a, 'pattern', 'new'), regexp_replace(a, 'pattern', 'new', 'g')",
        note="The pattern has no alternatives and at most one repeated character; the new text"
        " refers to no group.",
    ),
)
