"""Which refusals a run may see: any other reason is reported, and ends a run as failures do."""

from __future__ import annotations

import re

# What `code: message` matches, with the reason why no view of that kind is taken.
LONG = r"unsupported-type: .*needs more than 38 digits|unsupported-function: round\(numeric"
EXPECTED: tuple[tuple[str, str], ...] = (
    ("unsupported-query: CASE mixes char", "a char(n) among others is text of unclear blanks"),
    ("unsupported-type: a char without a length", "bpchar has no length to be filled to"),
    (LONG, "Spark has no decimal that would hold every value"),
)
# A name that the user took is never read as the built-in one. In the text of a view it stands with
# its schema.
SHADOWED = re.compile(
    r"unsupported-(function: .* is not built in|function: OPERATOR |query: a name with dots )"
)


def expected(reason: str, *, shadowed: bool = False) -> bool:
    if shadowed and SHADOWED.match(reason):
        return True
    return any(re.match(known, reason) for known, _ in EXPECTED)


def code_of(reason: str) -> str:
    return reason.partition(":")[0]
