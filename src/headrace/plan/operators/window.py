"""Window: functions over the partition that a row is in. Stateful: its stage has the rule.

d Window(R) = Window(R⁺ restricted to touched partitions) − what is stored of these
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from headrace.algebra.operator import Unary, require_columns
from headrace.algebra.scalar import Column
from headrace.algebra.window_call import WindowCall


@dataclass(frozen=True)
class Window(Unary):
    """The rows of `child`, each with the results of `calls` over the rows with equal `keys`.

    Rows count as often as their weights say, each copy with a place of its own.
    """

    keys: tuple[Column, ...]
    calls: tuple[WindowCall, ...]

    def __post_init__(self) -> None:
        read = frozenset(self.keys).union(*(call.read for call in self.calls))
        require_columns(read, self.child.column_set, "Window")

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns + tuple(call.output for call in self.calls)
