"""Examples of the page about cycles."""

from __future__ import annotations

import re
from itertools import pairwise

from tests.docs.pages import DOCS, read

PAGE = read(DOCS / "cycles.md")
BLOCKS = re.findall(r"^```(sql|text)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
SQL = [text for kind, text in BLOCKS if kind == "sql"]
REFUSED = [
    (statements, shown) for (_, statements), (kind, shown) in pairwise(BLOCKS) if kind == "text"
]
