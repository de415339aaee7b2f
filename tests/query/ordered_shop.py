"""The shop with columns whose collation orders texts by their bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.query.shop import Shop


class OrderedShop(Shop):
    """The shop as it is in a database of collation C."""

    def resolve(self, schema: str | None, name: str) -> Any:
        table = super().resolve(schema, name)
        if table is None:
            return None
        columns = tuple(
            replace(c, type=replace(c.type, ordered=True)) if c.type is not None else c
            for c in table.columns
        )
        return replace(table, columns=columns)
