"""Decorators of public functions: all failures inside become HeadraceErrors."""

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

# Methods that may be called repeatedly and from other threads, also after a project was closed.
ALWAYS_OPEN = frozenset({"close", "cancel"})


def entry_point(act: Callable[P, R]) -> Callable[P, R]:
    """Return the function with other exceptions than HeadraceErrors raised as `internal-error`.

    Calls with unknown arguments still raise TypeError. Text arguments are checked.
    """

    @wraps(act)
    def enter(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            check_text(args, kwargs)
            _require_open(act.__name__, args[0] if args else None)
            return act(*args, **kwargs)
        except HeadraceError:
            raise
        except Exception as error:
            inside = error.__traceback__ is not None and error.__traceback__.tb_next is not None
            if isinstance(error, TypeError) and not inside:
                raise
            raise internal_error(f"complete {act.__name__}", error) from error

    return enter


def entry_points(of: T) -> T:
    """Return the class with all public methods decorated, which fail once its engine is closed."""
    for name, member in tuple(vars(of).items()):
        if isinstance(member, FunctionType) and not name.startswith("_"):
            setattr(of, name, entry_point(member))
    return of


def _require_open(act: str, owner: object) -> None:
    """Raise `project-closed` for a method of a closed project."""
    engine = getattr(owner, "_engine", None)
    if engine is not None and engine.closed and act not in ALWAYS_OPEN:
        raise UserError(
            "project-closed", "the project is closed", hint="Open it again with headrace.connect."
        )
