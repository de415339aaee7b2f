"""What refreshes of each table took, as this process remembers it: for any thread."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from headrace.catalog import Catalog
from headrace.catalog.records import Refresh
from headrace.refresh.strategy import REMEMBERED, RefreshCosts


def past_of(catalog: Catalog, relation: str) -> RefreshCosts:
    """What the history tells of a table."""
    return RefreshCosts.of(catalog.efforts(relation, REMEMBERED))


class CostHistory:
    """Costs by relation: read from the history when they are first needed, then kept up."""

    def __init__(self) -> None:
        self._known: dict[str, RefreshCosts] = {}
        self._turn = threading.Lock()

    def of(self, catalog: Catalog, relation: str) -> RefreshCosts:
        """The past of a table."""
        with self._turn:
            known = self._known.get(relation)
        if known is not None:
            return known
        # Nobody else refreshes the table meanwhile; the catalog is not asked under our lock.
        found = past_of(catalog, relation)
        with self._turn:
            return self._known.setdefault(relation, found)

    def add(self, refreshes: Iterable[Refresh]) -> None:
        """Keep what was published; what was never asked for will be read with it."""
        with self._turn:
            for line in refreshes:
                past = self._known.get(line.table)
                if past is not None and line.effort is not None:
                    self._known[line.table] = past.then(line.mode, line.effort)
