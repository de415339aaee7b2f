"""What a run has seen, and its last line."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

from fuzz.coverage import ITEMS, PAIRS, Coverage
from fuzz.relations import Relation
from fuzz.write import Written


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
    failures: list[tuple[str, str, str]] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)

    def attempt(self, relation: Relation) -> None:
        self.views += 1
        self.tried.add(relation)

    def add(self, relation: Relation, written: Written) -> None:
        """The view was made."""
        self.queries.add(written.query)
        self.queries.update(query for form, _, query in written.needed if form == "stream")
        self.coverage.add(relation)

    def refuse(self, reason: str, script: str) -> None:
        self.refused[reason] += 1
        self.refused_scripts.setdefault(reason, script)

    def pair(self, *, changed: bool) -> None:
        self.pairs += 1
        self.pairs_changed += changed

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
                "items": {item: self.coverage.items[item] for item in ITEMS},
                "items_missing": self.coverage.items_missing,
                "operator_pairs_covered": round(self.coverage.pairs_covered, 3),
                "pairs_of_operators": {
                    f"{above} over {below}": pairs[above, below] for above, below in sorted(PAIRS)
                },
                "seconds": round(time.monotonic() - self.started),
            }
        )
