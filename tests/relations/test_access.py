"""The way to rows by their keys is the cheapest, and told as it was taken."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from headrace.relations.access import Ways, Wish
from headrace.render import PlanInput
from headrace.store import Keys

ROWS = 50_000_000
WANTED = PlanInput("r1", "before", ("c1", "c2"))
FOUND = pa.table({"_weight": [1]})


@dataclass
class Files:
    """Stands for a reading of which a pruned look-up compares `reached` rows."""

    reached: int
    pruned: list[bool] = field(default_factory=list)

    def size(self, _: PlanInput) -> int:
        return ROWS

    def reach(self, _: PlanInput, __: Keys) -> int:
        return self.reached

    def lookup(self, _: PlanInput, __: Keys, *, pruned: bool = True) -> pa.Table:
        self.pruned.append(pruned)
        return FOUND


def keys(number: int) -> Keys:
    return Keys(pa.table({"c1": pa.array(range(number), pa.int64())}))


@pytest.mark.parametrize(
    ("wish", "number", "reached", "way", "pruned"),
    [
        ("auto", 1000, ROWS, "probe", []),
        ("auto", 1000, 100_000, "pruned", [True]),
        ("auto", 1, 10_000_000, "probe", []),
        ("auto", 190_000, ROWS, "scan", [True]),
        ("probe", 1000, 0, "probe", []),
        ("pruned", 1000, ROWS, "pruned", [True]),
        ("scan", 1000, 0, "scan", [False]),
    ],
)
def test_what_row_groups_leave_decides(
    monkeypatch: pytest.MonkeyPatch,
    wish: Wish,
    number: int,
    reached: int,
    way: str,
    pruned: list[bool],
) -> None:
    monkeypatch.setattr(Ways, "_probed", lambda *_: FOUND)
    files: Any = Files(reached)
    nobody: Any = None
    assert Ways(nobody, files, wish).find(WANTED, keys(number)) == (FOUND, way)
    assert files.pruned == pruned


def test_where_nobody_can_tell_files_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ways, "_probed", lambda *_: None)
    nobody: Any = None
    for reached, way in ((ROWS, "scan"), (ROWS - 1, "pruned"), (0, "pruned")):
        files: Any = Files(reached)
        assert Ways(nobody, files, "probe").find(WANTED, keys(1)) == (FOUND, way)
        assert files.pruned == [True]
