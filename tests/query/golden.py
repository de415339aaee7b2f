"""Queries with their expected plans: files of blocks, `query => plan`.

    # what the query is about
    SELECT …
    =>
    names: …
    key: …
    Project …

`python -m tests.query.golden` rewrites the expected parts; read the diff.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from headrace.plan.describe import describe
from headrace.query import bind
from tests.query.shop import Shop

FOLDER = Path(__file__).parent / "golden"


@dataclass(frozen=True)
class Golden:
    """One block of a file."""

    file: str
    title: str
    query: str
    expected: str

    @property
    def id(self) -> str:
        return f"{self.file}: {self.title}"


def goldens() -> list[Golden]:
    return [golden for path in sorted(FOLDER.glob("*.txt")) for golden in _read(path)]


def _read(path: Path) -> Iterator[Golden]:
    for block in path.read_text().split("\n# "):
        title, _, rest = block.removeprefix("# ").partition("\n")
        query, _, expected = rest.partition("\n=>\n")
        yield Golden(path.stem, title.strip(), query.strip(), expected.strip())


def explained(query: str) -> str:
    """What a golden file says of a query."""
    bound = bind(query, Shop())
    names = ", ".join(
        f"{name} {column.type.sql}"
        for name, column in zip(bound.names, bound.plan.columns, strict=True)
    )
    key = "none" if bound.key is None else ", ".join(bound.names[i] for i in bound.key) or "one row"
    lines = [f"names: {names}", f"key: {key}", *(f"notice: {n}" for n in bound.notices)]
    return "\n".join((*lines, describe(bound.plan)))


def write() -> None:
    """Bring every file up to date."""
    for path in sorted(FOLDER.glob("*.txt")):
        blocks = [f"# {g.title}\n{g.query}\n=>\n{explained(g.query)}\n" for g in _read(path)]
        path.write_text("\n".join(blocks))


if __name__ == "__main__":
    write()
