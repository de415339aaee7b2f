"""Retries: the backoff after a failure, or the decision to stop. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from random import Random

from headrace.errors import Transient, Unavailable


@dataclass(frozen=True)
class Backoff:
    """Waits of at most `first`, twice that, and so on, but never more than `longest`.

    Retries stop after `patience` times the failures in a row that a project allows; None: never.
    """

    first: timedelta
    longest: timedelta
    patience: int | None

    def bound(self, failures: int) -> timedelta:
        """Return the longest wait after so many failures in a row."""
        doublings = min(failures - 1, (self.longest // self.first).bit_length())
        return min(self.first * (1 << doublings), self.longest)


# For something missing outside of Headrace, which comes back at some time: every table waits.
OUTSIDE = Backoff(timedelta(seconds=1), timedelta(minutes=1), None)
# For a server that restarts: it is back within seconds, and a connection attempt costs little.
RECONNECT = Backoff(timedelta(milliseconds=250), timedelta(seconds=5), None)
# For errors that pass by themselves: they get more attempts than others.
PASSING = Backoff(timedelta(seconds=1), timedelta(minutes=5), 4)
# For all other errors: somebody has to mend the data, the query, or Headrace.
OTHERS = Backoff(timedelta(seconds=10), timedelta(minutes=30), 1)


def backoff(error: type[BaseException]) -> Backoff:
    """Return the backoff for a branch of errors."""
    if issubclass(error, Unavailable):
        return OUTSIDE
    return PASSING if issubclass(error, Transient) else OTHERS


def after_failure(
    error: type[BaseException], failures: int, max_failures: int, random: Random
) -> timedelta | None:
    """Return the wait before the next attempt, None if the table is to be suspended instead.

    `failures` counts those in a row with this one. Waits are drawn evenly between nothing and
    their bound, so that tables that failed together do not come back together.
    """
    rule = backoff(error)
    if rule.patience is not None and failures >= max_failures * rule.patience:
        return None
    return rule.bound(failures) * random.random()
