"""Which error a failing store becomes, decided by class and errno, never by message."""

from __future__ import annotations

import errno
import re

from headrace.errors import InternalError, NeedsReinit, Unavailable
from headrace.store.location import StoreLocation
from headrace.store.log import LogFile, Pin, RelationLog

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def unavailable(error: Exception, place: StoreLocation, *, writing: bool) -> Unavailable:
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


def unreadable(
    error: Exception, place: StoreLocation, relation: str, pin: Pin, found: str
) -> NeedsReinit | Unavailable:
    """A file that is lost or damaged, where the store itself can be read; else the store's error.

    Of an object store nobody knows, unless it says that there is no such object.
    """
    missing = isinstance(error, FileNotFoundError)
    if missing or (place.local and place.trouble(writing=False) is None):
        return behind(relation, pin, found)
    return unavailable(error, place, writing=False)


def behind(relation: str, pin: Pin, found: str) -> NeedsReinit:
    """The log does not hold what the catalog says it holds."""
    return NeedsReinit(
        "store-behind",
        f"the log of relation {relation} does not reach its pin",
        detail=f"The catalog has version {pin.version} at epoch {pin.epoch}; {found}.",
        hint="Reinitialise the relation: its data are copied anew.",
    )


def require_after(relation: str, pin: Pin, epoch: int) -> None:
    """Rows are added at an epoch that is newer than all before."""
    if epoch <= pin.epoch:
        raise InternalError("invariant", f"epoch {epoch} of {relation} is not after {pin}")


def require_rows(folder: str, counted: int, rows: int | None) -> None:
    """The parts of a folder hold what was written into it, where that is known."""
    if rows is not None and rows != counted:
        raise InternalError(
            "invariant",
            f"{folder} holds {counted} rows, not the {rows} that were written",
            hint="The store must be a location that the driver and all executors share.",
        )


def readable(relation: str, log: RelationLog, after: int, upto: int) -> tuple[LogFile, ...]:
    """The files of the epochs in (after, upto], none of which may hold other epochs too."""
    for epoch in (after, upto):
        if file := log.merged_across(epoch):
            raise NeedsReinit(
                "epoch-expired",
                f"relation {relation} cannot be read at epoch {epoch} any more",
                detail=f"Epochs {file.first_epoch} to {file.last_epoch} were summed up.",
                hint="Read it at its published epoch.",
            )
    return log.between(after, upto)


def lease_lost(relation: str, pin: Pin) -> Unavailable:
    """A version beyond the pin: another writer, or a commit of ours that was not rolled back."""
    return Unavailable(
        "lease-lost",
        f"relation {relation} is no longer at version {pin.version}",
        detail="Another process has written to it; nothing was written by this one.",
    )
