"""The steps of a refresh: plain data that `refresh` performs and `explain` prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from headrace.plan.operators import Operator
from headrace.plan.stages import Stage
from headrace.render import PlanInput

Mode = Literal["FULL", "DIFFERENTIAL", "SKIPPED"]


@dataclass(frozen=True)
class TakeCut:
    """Ingest: bring the sources of a database to a new epoch, if anything in them changed."""

    sources: tuple[str, ...]


@dataclass(frozen=True)
class ComputeStage:
    """One Spark query: the weighted rows that a stage appends to its relation at the epoch."""

    stage: Stage
    mode: Mode
    reason: str
    plan: Operator
    inputs: tuple[PlanInput, ...]
    sql: str


@dataclass(frozen=True)
class Publish:
    """One transaction in the home database: pins, frontiers, served tables and history."""

    tables: tuple[str, ...]


Step = TakeCut | ComputeStage | Publish
