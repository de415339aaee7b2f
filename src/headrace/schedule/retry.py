"""Retries: how long to wait after a failure, or that it is time to stop. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from random import Random

from headrace.errors import Transient, Unavailable


@dataclass(frozen=True)
class Backoff:
    """Waits of at most `first`, twice that, and so on, but never more than `longest`.

    `patience` times the failures that a project allows in a row are borne; None bears any number.
    """

    first: timedelta
    longest: timedelta
    patience: int | None

    def bound(self, failures: int) -> timedelta:
        """The longest wait after so many failures in a row."""
        doublings = min(failures - 1, (self.longest // self.first).bit_length())
        return min(self.first * (1 << doublings), self.longest)


# What is missing outside of Headrace comes back at some time; every table waits for it.
OUTSIDE = Backoff(timedelta(seconds=1), timedelta(minutes=1), None)
# A server that restarts is back within seconds, and asking whether it is costs nothing.
RECONNECT = Backoff(timedelta(milliseconds=250), timedelta(seconds=5), None)
# What passes by itself should have passed after some more attempts than others get.
PASSING = Backoff(timedelta(seconds=1), timedelta(minutes=5), 4)
# Everything else waits for someone to mend it: the data, the query, Headrace.
OTHERS = Backoff(timedelta(seconds=10), timedelta(minutes=30), 1)


def backoff(error: type[BaseException]) -> Backoff:
    """How failures of a branch of errors are retried."""
    if issubclass(error, Unavailable):
        return OUTSIDE
    return PASSING if issubclass(error, Transient) else OTHERS


def after_failure(
    error: type[BaseException], failures: int, max_failures: int, random: Random
) -> timedelta | None:
    """The wait before the next attempt, None if the table is to be suspended instead.

    `failures` counts those in a row with this one. Waits are drawn evenly between nothing and
    their bound, so that tables that failed together do not come back together.
    """
    rule = backoff(error)
    if rule.patience is not None and failures >= max_failures * rule.patience:
        return None
    return rule.bound(failures) * random.random()
