"""Chains of ->, ->>, #> and #>>: one path into a document, and the text that stands there."""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from headrace.algebra.scalar import Literal, Scalar
from headrace.functions import call
from headrace.functions.documents import JSONB, path_text
from headrace.query.coerce import settled
from headrace.query.literals import Bound
from headrace.query.refusal import located, refuse
from headrace.types import plain_text

EXTRACTIONS = (exp.JSONExtract, exp.JSONExtractScalar, exp.JSONBExtract, exp.JSONBExtractScalar)
_TEXTS = (exp.JSONExtractScalar, exp.JSONBExtractScalar)
_KEYS = re.compile(r"\{([A-Za-z_]\w*(?:,[A-Za-z_]\w*)*)\}")


def is_extraction(node: exp.Expr) -> bool:
    """An extraction, or a cast of its key, which the parser takes for one of the whole."""
    return isinstance(node.this if isinstance(node, exp.Cast) else node, EXTRACTIONS)


def extracted(node: exp.Expr, bind: Callable[[exp.Expr], Bound]) -> Scalar:
    """The text at the end of a chain; `bind` binds the document that it begins with."""
    outermost = _uncast(node)
    if not isinstance(outermost, _TEXTS):
        hint = "Write ->> or #>> for the text of what is there."
        raise refuse("unsupported-type", "a part of a document as jsonb", node, hint)
    keys: list[str] = []
    inner: exp.Expr = outermost
    while is_extraction(inner):
        link = _uncast(inner)
        if link is not outermost and isinstance(link, _TEXTS):
            break
        keys = [*_keys(link), *keys]
        inner = link.this
        while isinstance(inner, exp.Paren):
            inner = inner.this
    document = settled(bind(inner))
    if document.type != JSONB:
        message = f"{document.type.sql} is no document"
        raise refuse("unsupported-type", message, node, "Only jsonb is maintained.")
    with located(node):
        return call("json text", document, Literal(path_text(keys), plain_text()))


def _uncast(node: exp.Expr) -> exp.Expr:
    """`a -> 'key'::text` is a cast of the key, which is text already."""
    if not isinstance(node, exp.Cast):
        return node
    if node.args["to"].this != exp.DType.TEXT:
        hint = "Put parentheses around what is cast."
        raise refuse("unsupported-query", "a cast of a document's key", node, hint)
    inner: exp.Expr = node.this
    return inner


def _keys(link: exp.Expr) -> list[str]:
    written = link.args["expression"]
    while isinstance(written, (exp.Paren, exp.Cast)):
        written = written.this
    if isinstance(written, exp.Literal) and written.is_string:
        if isinstance(link, (exp.JSONExtract, exp.JSONExtractScalar)):
            return [written.name]
        keys = _KEYS.fullmatch(written.name)
        if keys is not None:
            return [*keys[1].split(",")]
    hint = "Write keys of objects, as constants."
    raise refuse("unsupported-function", "this path into a document", link, hint)
