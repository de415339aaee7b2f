"""The access path to rows by their keys is the cheapest, and reported as it was used."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from headrace.relations.access_paths import AccessPaths, RequestedPath
from headrace.render import PlanInput
from headrace.store import By, Keys, LookupCost

ROWS = 50_000_000
WANTED = PlanInput("r1", "before", ("c1", "c2"))
FOUND = pa.table({"_weight": [1]})


@dataclass
class Files:
    """Stands for a reading of which a look-up compares `reached` rows."""

    reached: LookupCost
    by: list[By] = field(default_factory=list)

    def size(self, _: PlanInput) -> int:
        return ROWS

    def lookup_cost(self, _: PlanInput, __: Keys) -> LookupCost:
        return self.reached

    def lookup(self, _: PlanInput, __: Keys, *, by: By = "best") -> pa.Table:
        self.by.append(by)
        return FOUND


def keys(number: int) -> Keys:
    return Keys(pa.table({"c1": pa.array(range(number), pa.int64())}))


@pytest.mark.parametrize(
    ("requested", "number", "reached", "way", "by"),
    [
        ("auto", 1000, LookupCost(ROWS), "probe", []),
        ("auto", 1000, LookupCost(100_000), "pruned", ["best"]),
        ("auto", 1000, LookupCost(100_000, indexed=True), "index", ["best"]),
        ("auto", 1000, LookupCost(10_000_000, indexed=True), "probe", []),
        ("auto", 1, LookupCost(10_000_000), "probe", []),
        ("auto", 190_000, LookupCost(ROWS), "scan", ["best"]),
        ("probe", 1000, LookupCost(0), "probe", []),
        ("index", 1000, LookupCost(ROWS), "index", ["index"]),
        ("pruned", 1000, LookupCost(ROWS), "pruned", ["pruned"]),
        ("scan", 1000, LookupCost(0), "scan", ["scan"]),
    ],
)
def test_what_row_groups_leave_decides(
    monkeypatch: pytest.MonkeyPatch,
    requested: RequestedPath,
    number: int,
    reached: LookupCost,
    way: str,
    by: list[By],
) -> None:
    monkeypatch.setattr(AccessPaths, "_probed", lambda *_: FOUND)
    files: Any = Files(reached)
    nobody: Any = None
    assert AccessPaths(nobody, files, requested).find(WANTED, keys(number)) == (FOUND, way)
    assert files.by == by


def test_where_nobody_can_tell_files_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AccessPaths, "_probed", lambda *_: None)
    nobody: Any = None
    for reached, way in ((ROWS, "scan"), (ROWS - 1, "pruned"), (0, "pruned")):
        files: Any = Files(LookupCost(reached))
        assert AccessPaths(nobody, files, "probe").find(WANTED, keys(1)) == (FOUND, way)
        assert files.by == ["best"]
