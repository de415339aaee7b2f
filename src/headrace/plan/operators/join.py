"""Join: inner or cross, on any condition.    d(L⋈R) = dL⋈R⁺ + L⁻⋈dR"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from headrace.algebra.operator import Binary, Delta, Operator
from headrace.algebra.scalar import Column, Scalar
from headrace.plan.operators.union_all import UnionAll


@dataclass(frozen=True)
class Join(Binary):
    """Pairs of rows for which `condition` is true; weights multiply. No condition: all pairs."""

    condition: Scalar | None = None

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.left.columns + self.right.columns

    def delta(self, of: Delta) -> Operator:
        return UnionAll(
            (
                replace(self, left=of.change(self.left), right=of.after(self.right)),
                replace(self, left=of.before(self.left), right=of.change(self.right)),
            )
        )
