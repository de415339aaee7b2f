"""One case that can be run again: tables, rows, a view, and batches of changes.

As a script it is plain SQL with a comment line before each part, so that a failing case can be read
by people, run in psql up to the stream table, and kept under tests/fuzz/examples.
"""

from __future__ import annotations

from dataclasses import dataclass

from fuzz.changes import Batch

TABLES, NEEDED, VIEW, CHANGE = "-- tables", "-- needed", "-- view", "-- change"


@dataclass(frozen=True)
class Example:
    """`setup` creates and fills tables; `needed` are views and stream tables read by the view."""

    setup: tuple[str, ...]
    needed: tuple[tuple[str, str, str], ...]
    query: str
    batches: tuple[Batch, ...]

    @property
    def script(self) -> str:
        parts = [TABLES, *(f"{statement};" for statement in self.setup)]
        for form, name, query in self.needed:
            word = "VIEW" if form == "view" else "STREAM TABLE"
            parts += [NEEDED, f"CREATE {word} {name} AS {query};"]
        parts += [VIEW, f"CREATE STREAM TABLE v AS {self.query};"]
        for batch in self.batches:
            parts += [CHANGE, *(f"{statement};" for statement in batch)]
        return "\n".join(parts) + "\n"


def read_script(text: str) -> Example:
    """The example that a script was written from. A statement ends with its line."""
    setup: list[str] = []
    needed: list[tuple[str, str, str]] = []
    query = ""
    batches: list[list[str]] = []
    part = ""
    for line in text.splitlines():
        if line in (TABLES, NEEDED, VIEW, CHANGE):
            part = line
            if part == CHANGE:
                batches.append([])
            continue
        if not line or line.startswith("--"):
            continue
        statement = line.removesuffix(";")
        if part == TABLES:
            setup.append(statement)
        elif part == CHANGE:
            batches[-1].append(statement)
        else:
            head, _, body = statement.partition(" AS ")
            *words, name = head.split()
            if part == VIEW:
                query = body
            else:
                needed.append(("view" if words[1] == "VIEW" else "stream", name, body))
    return Example(tuple(setup), tuple(needed), query, tuple(map(tuple, batches)))
