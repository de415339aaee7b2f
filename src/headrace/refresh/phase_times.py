"""Where the time of a refresh goes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from headrace.catalog.records import StageRun


@dataclass
class Clock:
    """Seconds by phase, in the order in which the phases first came, and what the stages did."""

    phases: dict[str, float] = field(default_factory=dict)
    stages: list[StageRun] = field(default_factory=list)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self.phases[name] = self.phases.get(name, 0.0) + time.perf_counter() - started
