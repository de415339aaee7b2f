"""Scan: the leaf that reads a relation.    d Scan(R) = change of R"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from headrace.algebra.operator import Delta, Operator
from headrace.algebra.scalar import Column

Version = Literal["change", "before", "after", "stale", "found", "lost"]


@dataclass(frozen=True)
class Scan(Operator):
    """Rows of `relation`: its change, or its state before or after the refresh.

    Versions of what is only known while the refresh runs: "stale" are keys of groups; a loop that
    computes the relation has rows "found" in the round before, and rows "lost" so far.

    `fields` pairs each physical column of the relation with the plan's column. A plan that is not
    part of a delta has `version` "after".
    """

    relation: str
    fields: tuple[tuple[str, Column], ...]
    version: Version = "after"

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return tuple(column for _, column in self.fields)

    @property
    def children(self) -> tuple[Operator, ...]:
        return ()

    def with_children(self, *children: Operator) -> Scan:
        assert not children
        return self

    def delta(self, of: Delta) -> Operator:
        return replace(self, version="change")
