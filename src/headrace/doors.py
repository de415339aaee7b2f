"""The doors of the library: whatever fails behind them is a HeadraceError."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import ParamSpec, TypeVar

from headrace.errors import HeadraceError, internal_error

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound=type)


def door(act: Callable[P, R]) -> Callable[P, R]:
    """The function, with every exception that is no HeadraceError as an `internal-error`.

    Arguments that the function does not have stay a TypeError.
    """

    @wraps(act)
    def enter(*given: P.args, **named: P.kwargs) -> R:
        try:
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
    """The class with all its public methods as doors."""
    for name, member in tuple(vars(of).items()):
        if isinstance(member, FunctionType) and not name.startswith("_"):
            setattr(of, name, door(member))
    return of
