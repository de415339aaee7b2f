"""Names that SQL must quote, and names of our own columns."""

from __future__ import annotations

NAMES = (
    'quo"te',
    "apo'strophe",
    "dot.ted",
    "Mixed Case",
    "select",
    "ünïcødé✓",
    "x" * 63,
    "back\\slash",
    "per%cent %s %(a)s",
    "{brace}",
    "$headrace$",
    "new",
    "old",
    "image",
    "tg_op",
    "problem",
    "found",
    "_weight",
    "_xid",
    "_seq",
    "_misfit",
    "c1",
    "c2",
    "headrace_new",
)
