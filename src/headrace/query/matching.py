"""LIKE, SIMILAR TO and regular expressions: each a call with a constant pattern."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from headrace.algebra.scalar import Literal, Scalar
from headrace.errors import UserError
from headrace.functions import call
from headrace.functions.regular import from_similar
from headrace.functions.strings import lowered
from headrace.functions.text import escaped_by
from headrace.query.coerce import settled
from headrace.query.literals import Bound, Untyped
from headrace.query.refusal import located
from headrace.types import INTEGER, plain_text

MATCHES = (exp.Like, exp.ILike, exp.SimilarTo, exp.RegexpLike, exp.RegexpILike)


@dataclass(frozen=True)
class Match:
    """A test of `MATCHES` as it is meant: its kind, its parts, and whether it is negated."""

    kind: type[exp.Expr]
    text: exp.Expr
    pattern: exp.Expr
    escape: exp.Expr | None
    negated: bool


def meant(node: exp.Expr) -> Match:
    """Return the test of a node; views spell ESCAPE and SIMILAR TO as calls around the pattern."""
    escape = None
    if isinstance(node, exp.Escape):
        escape, node = node.args["expression"], node.this
    kind, pattern = type(node), node.args["expression"]
    match pattern:
        case exp.Anonymous(this=str() as name, expressions=[inner, *rest]):
            if name == "similar_to_escape" and kind is exp.RegexpLike:
                kind, pattern, escape = exp.SimilarTo, inner, rest[0] if rest else None
            elif name == "like_escape" and kind in (exp.Like, exp.ILike) and rest:
                pattern, escape = inner, rest[0]
    return Match(kind, node.this, pattern, escape, bool(node.args.get("negate")))


def matches(
    kind: type[exp.Expr], text: Bound, pattern: Bound, escape: Bound | None, node: exp.Expr
) -> Scalar:
    """Return the call for a test, without its NOT."""
    with located(node):
        subject, written = padded(settled(text)), constant(pattern)
        if escape is not None:
            written = _escaped(written, constant(escape))
        if kind is exp.Like:
            return call("like", subject, Literal(written, plain_text()))
        if kind is exp.ILike:
            folded = call("lower", folding(subject, "ILIKE"))
            return call("like", folded, Literal(lowered(written), plain_text()))
        if kind is exp.SimilarTo:
            regular = from_similar(written)
            if regular is None:
                raise UserError("unsupported-function", "this pattern is not maintained")
            return call("~", subject, Literal(regular, plain_text()))
        if kind is exp.RegexpILike:
            return call("~*", folding(subject, "~*"), Literal(written, plain_text()))
        return call("~", subject, Literal(written, plain_text()))


def constant(bound: Bound) -> str:
    """Return a text that is written in the query."""
    value = bound.text if isinstance(bound, Untyped) else None
    if isinstance(bound, Literal) and isinstance(bound.value, str):
        value = bound.value
    if value is None:
        hint = "Write it as a constant in the query."
        raise UserError("unsupported-function", "a pattern must be a constant", hint=hint)
    return value


def padded(scalar: Scalar) -> Scalar:
    """Return a char(n) with its blanks, where they count; other values as they are."""
    if scalar.type.keeps_blanks:
        return call("with blanks", scalar)
    if scalar.type.kind != "character" or scalar.type.length is None:
        return scalar
    return call("rpad", scalar, Literal(scalar.type.length, INTEGER), Literal(" ", plain_text()))


def folding(text: Scalar, what: str) -> Scalar:
    """Return the text if its collation is C; Spark need not know the case rules of others."""
    if text.type.is_text and not text.type.folds:
        hint = 'Write COLLATE "C" after the text, or declare the column so.'
        raise UserError("unsupported-function", f"{what} needs collation C", hint=hint)
    return text


def _escaped(pattern: str, escape: str) -> str:
    if len(escape) > 1:
        raise UserError("invalid-query", "an escape must be one character or none")
    escaped_pattern = escaped_by(pattern, escape)
    if escaped_pattern is None:
        raise UserError("invalid-query", "a pattern must not end with its escape character")
    return escaped_pattern
