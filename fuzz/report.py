"""What a run has seen, and its last line."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

from fuzz.coverage import ITEMS, PAIRS, Coverage, items_of
from fuzz.refusals import code_of
from fuzz.relations import Relation
from fuzz.shapes import SHADOWED, SHAPES
from fuzz.write import Written

# The shapes that are counted one by one; others have the names of items that were there before.
COUNTED = (
    *SHAPES, "self join", "using", "natural join", "lateral", "cte twice", "filter clause",
    "aggregate expression",
)  # fmt: skip


@dataclass
class Shape:
    """What became of the views of one shape."""

    tried: int = 0
    accepted: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    refreshes: int = 0
    changed: int = 0
    failed: int = 0

    @property
    def line(self) -> dict[str, object]:
        return {**vars(self), "refused": dict(self.refused)}


@dataclass
class Report:
    """Counts of a run.

    `tried` is what all views had, which decides what is chosen next; `coverage` and `queries` are
    of those that are maintained.
    """

    tried: Coverage = field(default_factory=Coverage)
    coverage: Coverage = field(default_factory=Coverage)
    queries: set[str] = field(default_factory=set)
    views: int = 0
    pairs: int = 0
    pairs_changed: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    refused_scripts: dict[str, str] = field(default_factory=dict)
    unexpected: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[str, str, str]] = field(default_factory=list)
    shapes: dict[str, Shape] = field(
        default_factory=lambda: {name: Shape() for name in (*COUNTED, SHADOWED)}
    )
    started: float = field(default_factory=time.monotonic)

    def of(self, relation: Relation, *, shadowed: bool = False) -> list[Shape]:
        """The counts of the shapes that a view has."""
        names = items_of(relation).keys() | ({SHADOWED} if shadowed else set())
        return [shape for name, shape in self.shapes.items() if name in names]

    def attempt(self, relation: Relation, shapes: list[Shape]) -> None:
        self.views += 1
        self.tried.add(relation)
        for shape in shapes:
            shape.tried += 1

    def add(self, relation: Relation, written: Written, shapes: list[Shape]) -> None:
        """The view was made."""
        for shape in shapes:
            shape.accepted += 1
        self.queries.add(written.query)
        self.queries.update(query for form, _, query in written.needed if form == "stream")
        self.coverage.add(relation)

    def refuse(self, reason: str, script: str, shapes: list[Shape], *, expected: bool) -> None:
        self.refused[reason] += 1
        if not expected:
            self.unexpected[reason] += 1
        self.refused_scripts.setdefault(reason, script)
        for shape in shapes:
            shape.refused[code_of(reason)] += 1

    def pair(self, shapes: list[Shape], *, changed: bool) -> None:
        self.pairs += 1
        self.pairs_changed += changed
        for shape in shapes:
            shape.refreshes += 1
            shape.changed += changed

    def fail(self, seed: str, what: str, script: str) -> None:
        self.failures.append((seed, what, script))
        sys.stderr.write(f"\n==== failure, seed {seed}\n{what}\n{script}\n")

    @property
    def line(self) -> str:
        refused = sum(self.refused.values())
        return (
            f"{self.views} views, {refused} refused, {self.pairs} pairs,"
            f" {self.pairs_changed} with a change, {len(self.failures)} failures,"
            f" {self.coverage.pairs_covered:.0%} of the operator pairs,"
            f" {time.monotonic() - self.started:.0f} s"
        )

    def json(self) -> str:
        """The last line of a run."""
        pairs = self.coverage.pairs
        return json.dumps(
            {
                "views": len(self.queries),
                "views_tried": self.views,
                "pairs": self.pairs,
                "pairs_changed": self.pairs_changed,
                "failures": len(self.failures),
                "refused": dict(self.refused.most_common()),
                "refused_unexpectedly": dict(self.unexpected.most_common()),
                "shapes": {name: shape.line for name, shape in self.shapes.items()},
                "items": {item: self.coverage.items[item] for item in ITEMS},
                "items_missing": self.coverage.items_missing,
                "operator_pairs_covered": round(self.coverage.pairs_covered, 3),
                "pairs_of_operators": {
                    f"{above} over {below}": pairs[above, below] for above, below in sorted(PAIRS)
                },
                "seconds": round(time.monotonic() - self.started),
            }
        )
