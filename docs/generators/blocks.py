"""Generated blocks inside pages that are written by hand.

<!-- generated: name -->
anything here is replaced
<!-- end -->
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

BLOCK = re.compile(
    r"(?P<begin><!-- generated: (?P<name>[a-z0-9 ]+) -->\n).*?(?P<end><!-- end -->)", re.DOTALL
)


def refreshed(page: str, blocks: Mapping[str, str]) -> str:
    """The page with its blocks replaced; a name on one side only is an error."""
    names = block_names(page)
    if sorted(names) != sorted(blocks):
        raise ValueError(f"the page has blocks {sorted(names)}, generated are {sorted(blocks)}")
    return BLOCK.sub(lambda m: f"{m['begin']}\n{blocks[m['name']].strip()}\n\n{m['end']}", page)


def block_names(page: str) -> list[str]:
    return [found["name"] for found in BLOCK.finditer(page)]


def fenced(text: str, language: str = "text") -> str:
    """A code block."""
    return f"```{language}\n{text.strip()}\n```"


def text_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns side by side, as psql shows them."""
    if not rows:
        return " | ".join(headings) + "\n(no rows)"
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]

    def lines() -> Iterator[str]:
        yield " | ".join(map(str.ljust, headings, widths)).rstrip()
        yield "-+-".join("-" * width for width in widths)
        for row in rows:
            yield " | ".join(map(str.ljust, row, widths)).rstrip()

    return "\n".join(lines())
