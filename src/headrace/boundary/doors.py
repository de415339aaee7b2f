"""The doors of the library: whatever fails behind them is a HeadraceError."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import ParamSpec, TypeVar

from headrace.boundary.arguments import check_text
from headrace.errors import HeadraceError, UserError, internal_error

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound=type)

# What may be called any number of times, and from other threads, also while a project is closed.
ALWAYS_OPEN = frozenset({"close", "cancel"})


def door(act: Callable[P, R]) -> Callable[P, R]:
    """The function, with every exception that is no HeadraceError as an `internal-error`.

    Arguments that the function does not have stay a TypeError. Text that is no text is refused.
    """

    @wraps(act)
    def enter(*given: P.args, **named: P.kwargs) -> R:
        try:
            check_text(given, named)
            _require_open(act.__name__, given[0] if given else None)
            return act(*given, **named)
        except HeadraceError:
            raise
        except Exception as error:
            inside = error.__traceback__ is not None and error.__traceback__.tb_next is not None
            if isinstance(error, TypeError) and not inside:
                raise
            raise internal_error(f"complete {act.__name__}", error) from error

    return enter


def doors(of: T) -> T:
    """The class with all its public methods as doors, shut once its engine is closed."""
    for name, member in tuple(vars(of).items()):
        if isinstance(member, FunctionType) and not name.startswith("_"):
            setattr(of, name, door(member))
    return of


def _require_open(act: str, owner: object) -> None:
    """Raise `project-closed` for a method of a project that was closed."""
    engine = getattr(owner, "_engine", None)
    if engine is not None and engine.closed and act not in ALWAYS_OPEN:
        raise UserError(
            "project-closed", "the project was closed", hint="Open it again with headrace.connect."
        )
