"""Row groups that lookups read."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.store import lookup


def watched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[int]]]:
    """The row groups that look-ups read: of the key's columns, and of all that is wanted."""
    read: list[tuple[str, list[int]]] = []

    class Watched(pq.ParquetFile):
        def read_row_groups(self, groups: list[int], *args: Any, **options: Any) -> pa.Table:
            read.append(("keys", groups))
            return super().read_row_groups(groups, *args, **options)

        def iter_batches(self, size: int, groups: list[int], *args: Any, **options: Any) -> Any:
            read.append(("rows", groups))
            return super().iter_batches(size, groups, *args, **options)

    monkeypatch.setattr(lookup.pq, "ParquetFile", Watched)
    return read
