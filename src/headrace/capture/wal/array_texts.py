"""Arrays as PostgreSQL prints them, as lists of the texts of their elements."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

ELEMENT = re.compile(r'"((?:[^"\\]|\\.)*)"|([^,"]+)', re.DOTALL)
ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def lists_of_texts(texts: pa.Array) -> pa.Array:
    """A list of texts for each array of one dimension counted from 1; ValueError for others.

    Elements that need no quotes, numbers above all, are split by Arrow.
    """
    # Other bounds are printed in front, a second dimension begins with a second brace.
    plain = pc.match_substring_regex(texts, r"^\{(?:[^{]|$)")
    if not pc.all(plain, min_count=0).as_py():
        raise ValueError("an array has several dimensions or is not counted from 1")
    if pc.any(pc.match_substring(texts, '"'), min_count=0).as_py():
        parsed = [None if text is None else _elements(text) for text in texts.to_pylist()]
        return pa.array(parsed, pa.list_(pa.string()))
    bodies = pc.utf8_slice_codeunits(texts, 1, -1)
    split = pc.split_pattern(bodies, ",")
    # Nothing but the body of an empty array splits into an empty text: others are quoted.
    counts = pc.if_else(pc.equal(bodies, ""), 0, pc.list_value_length(split))
    elements = split.flatten()
    elements = elements.filter(pc.not_equal(elements, ""))
    elements = pc.if_else(pc.equal(elements, "NULL"), pa.scalar(None, pa.string()), elements)
    offsets = np.zeros(len(texts) + 1, np.int32)
    np.cumsum(pc.fill_null(counts, 0).to_numpy(zero_copy_only=False), out=offsets[1:])
    mask = texts.is_null() if texts.null_count else None
    return pa.ListArray.from_arrays(pa.array(offsets), elements, mask=mask)


def _elements(text: str) -> list[str | None]:
    body = text[1:-1]
    found = list(ELEMENT.finditer(body))
    length = sum(match.end() - match.start() for match in found) + max(len(found) - 1, 0)
    if length != len(body) or not text.endswith("}"):
        raise ValueError("an array is malformed")
    return [_element(quoted, bare) for quoted, bare in (match.groups() for match in found)]


def _element(quoted: str | None, bare: str) -> str | None:
    if quoted is not None:
        return ESCAPED.sub(r"\1", quoted)
    return None if bare == "NULL" else bare
