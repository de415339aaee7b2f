"""Which error a failing store becomes, decided by class and errno, never by message."""

from __future__ import annotations

import errno
import re

from headrace.errors import NeedsReinit, Unavailable
from headrace.store.log import Pin
from headrace.store.place import Place

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def unavailable(error: Exception, place: Place, *, writing: bool) -> Unavailable:
    """A disk that is full, or a location that cannot be used."""
    number = getattr(error, "errno", None) or place.trouble(writing=writing)
    detail = COLOUR.sub("", str(error)).strip()
    if number in FULL:
        return Unavailable(
            "store-full",
            f"no space left for the store at {place.root}",
            detail=detail,
            hint="Free some space; the last published state is untouched.",
        )
    return Unavailable(
        "store-unreachable",
        f"the store at {place.root} cannot be {'written' if writing else 'read'}",
        detail=detail,
        hint="Check that the location exists and that this user may use it.",
    )


def behind(relation: str, pin: Pin, found: str) -> NeedsReinit:
    """The log does not hold what the catalog says it holds."""
    return NeedsReinit(
        "store-behind",
        f"the log of relation {relation} does not reach its pin",
        detail=f"The catalog has version {pin.version} at epoch {pin.epoch}; {found}.",
        hint="Reinitialise the relation: its data are copied anew.",
    )


def lease_lost(relation: str, pin: Pin) -> Unavailable:
    """A version beyond the pin: another writer, or a commit of ours that was not rolled back."""
    return Unavailable(
        "lease-lost",
        f"relation {relation} is no longer at version {pin.version}",
        detail="Another process has written to it; nothing was written by this one.",
    )
