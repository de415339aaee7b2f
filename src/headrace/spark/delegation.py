"""Threads that help another: they act in its name, and are cancelled with it."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from threading import get_ident
from typing import TypeVar

Result = TypeVar("Result")
_helped: ContextVar[int | None] = ContextVar("headrace_helped_thread", default=None)


def acting_thread() -> int:
    """The thread that this one helps, or itself."""
    helped = _helped.get()
    return get_ident() if helped is None else helped


def helping(work: Callable[[], Result]) -> Callable[[], Result]:
    """The work as another thread does it for this one."""
    helped = acting_thread()

    def help_out() -> Result:
        token = _helped.set(helped)
        try:
            return work()
        finally:
            _helped.reset(token)

    return help_out
