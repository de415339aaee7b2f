"""Decoders from the text output of PostgreSQL's types to the Arrow values that ADBC reads.

The texts follow `source.conninfo.SETTINGS`. A value that does not fit (`Type.misfit`), or is no
value of the type, raises ValueError. The digits of a numeric are left to
`source.reading.to_stored`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.types import Type

ELEMENT = re.compile(r'"((?:[^"\\]|\\.)*)"|([^,"]+)', re.DOTALL)
ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def lists_of_texts(texts: pa.Array) -> pa.Array:
    """Return the elements of arrays of one dimension with lower bound 1; ValueError for others.

    Arrow splits elements that need no quotes, such as numbers.
    """
    # Other bounds are printed in front, a second dimension begins with a second brace.
    plain = pc.match_substring_regex(texts, r"^\{(?:[^{]|$)")
    if not pc.all(plain, min_count=0).as_py():
        raise ValueError("an array has several dimensions or a lower bound other than 1")
    if pc.any(pc.match_substring(texts, '"'), min_count=0).as_py():
        parsed = [None if text is None else _elements(text) for text in texts.to_pylist()]
        return pa.array(parsed, pa.list_(pa.string()))
    bodies = pc.utf8_slice_codeunits(texts, 1, -1)
    split = pc.split_pattern(bodies, ",")
    # Only the body of an empty array splits into an empty text: empty elements are quoted.
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
    matches = list(ELEMENT.finditer(body))
    length = sum(match.end() - match.start() for match in matches) + max(len(matches) - 1, 0)
    if length != len(body) or not text.endswith("}"):
        raise ValueError("an array is malformed")
    return [_element(quoted, bare) for quoted, bare in (match.groups() for match in matches)]


def _element(quoted: str | None, bare: str) -> str | None:
    if quoted is not None:
        return ESCAPED.sub(r"\1", quoted)
    return None if bare == "NULL" else bare


Reader = Callable[[pa.Array, Type], pa.Array]

# Dates with years of four digits sort as their texts do. Timestamps compare by their dates.
LAST_DAY = "9999-12-31"
SECOND_DAY = "0001-01-02"
INFINITE = pa.array(["infinity", "-infinity"])
NO_DIGIT = 255


def parse_texts(texts: pa.Array, type_: Type) -> pa.Array:
    """Return the values of a string array of PostgreSQL's texts; NULL stays NULL."""
    return READERS[type_.kind](texts, type_)


def _as_it_is(texts: pa.Array, _: Type) -> pa.Array:
    return texts


def _cast(texts: pa.Array, type_: Type) -> pa.Array:
    return texts.cast(type_.arrow)


def _boolean(texts: pa.Array, _: Type) -> pa.Array:
    _refuse_any(pc.invert(pc.is_in(texts, value_set=pa.array(["t", "f", None]))))
    return pc.equal(texts, "t")


def _character(texts: pa.Array, _: Type) -> pa.Array:
    """Remove the padding, as a cast to text does."""
    return pc.ascii_rtrim(texts, characters=" ")


def _bytea(texts: pa.Array, _: Type) -> pa.Array:
    """Decode hex digits, all values at once, since they lie one after another."""
    _refuse_any(pc.invert(pc.starts_with(texts, "\\x")))
    _refuse_any(pc.not_equal(pc.bit_wise_and(pc.binary_length(texts), 1), 0))
    digits = pc.utf8_slice_codeunits(texts, 2).cast(pa.binary())
    _, offsets, data = digits.buffers()
    places = np.frombuffer(offsets, np.int32)[digits.offset : digits.offset + len(digits) + 1]
    if places[0] == places[-1]:
        return digits
    halves = HEX_DIGITS[np.frombuffer(data, np.uint8)[places[0] : places[-1]]]
    if (halves == NO_DIGIT).any():
        raise ValueError("a byte is not written as two hex digits")
    decoded = pa.py_buffer((halves[0::2] << 4) | halves[1::2])
    new_offsets = pa.py_buffer(((places - places[0]) // 2).astype(np.int32))
    values = pa.Array.from_buffers(pa.binary(), len(digits), [None, new_offsets, decoded])
    if not texts.null_count:
        return values
    return pc.if_else(texts.is_null(), pa.scalar(None, pa.binary()), values)


def _timestamp(texts: pa.Array, type_: Type) -> pa.Array:
    _refuse_any(pc.greater_equal(texts, LAST_DAY))
    return texts.cast(type_.arrow)


def _timestamptz(texts: pa.Array, type_: Type) -> pa.Array:
    _refuse_any(pc.less(texts, SECOND_DAY))
    return _timestamp(texts, type_)


def _interval(texts: pa.Array, _: Type) -> pa.Array:
    _refuse_any(pc.is_in(texts, value_set=INFINITE))
    return texts


def _array(texts: pa.Array, type_: Type) -> pa.Array:
    assert type_.element is not None
    lists = lists_of_texts(texts)
    elements = parse_texts(lists.values, type_.element)
    mask = lists.is_null() if lists.null_count else None
    return pa.ListArray.from_arrays(lists.offsets, elements, mask=mask)


READERS: Mapping[str, Reader] = {
    "boolean": _boolean,
    "smallint": _cast,
    "integer": _cast,
    "bigint": _cast,
    "real": _cast,
    "double precision": _cast,
    "numeric": _as_it_is,
    "text": _as_it_is,
    "character varying": _as_it_is,
    "character": _character,
    "bytea": _bytea,
    "date": _cast,
    "timestamp": _timestamp,
    "timestamptz": _timestamptz,
    "time": _as_it_is,
    "interval": _interval,
    "uuid": _as_it_is,
    "enum": _as_it_is,
    "jsonb": _as_it_is,
    "array": _array,
}


def _hex_digits() -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    values = np.full(256, NO_DIGIT, np.uint8)
    for value, digit in enumerate(b"0123456789abcdef"):
        values[digit] = value
    return values


HEX_DIGITS = _hex_digits()


def _refuse_any(refused: pa.Array) -> None:
    if pc.any(refused, min_count=0).as_py():
        raise ValueError("a value does not fit")
