"""The errors of a failing store, decided by exception class and errno, never by message."""

from __future__ import annotations

import errno
import re

from headrace.errors import InternalError, NeedsReinit, Unavailable
from headrace.store.location import StoreLocation
from headrace.store.log import LogFile, Pin, RelationLog

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def unavailable(error: Exception, place: StoreLocation, *, writing: bool) -> Unavailable:
    """Return the error for a full disk, or for a location that cannot be used."""
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
        f"could not {'write to' if writing else 'read from'} the store at {place.root}",
        detail=detail,
        hint="Check that the location exists and that this user has access to it.",
    )


def unreadable(
    error: Exception, place: StoreLocation, relation: str, pin: Pin, problem: str
) -> NeedsReinit | Unavailable:
    """Return `store-behind` for a lost or damaged file, else the error of the store itself.

    A file of an object store counts as lost only if the store reports that it does not exist.
    """
    missing = isinstance(error, FileNotFoundError)
    if missing or (place.local and place.trouble(writing=False) is None):
        return behind(relation, pin, problem)
    return unavailable(error, place, writing=False)


def behind(relation: str, pin: Pin, problem: str) -> NeedsReinit:
    """Return the error for a log that lacks what the catalog has pinned."""
    return NeedsReinit(
        "store-behind",
        f"the log of relation {relation} does not reach its pin",
        detail=f"The catalog has version {pin.version} at epoch {pin.epoch}; {problem}.",
        hint="Reinitialise the relation: its data are copied again.",
    )


def require_after(relation: str, pin: Pin, epoch: int) -> None:
    """Raise `invariant` unless the epoch is later than that of the pin."""
    if epoch <= pin.epoch:
        raise InternalError("invariant", f"epoch {epoch} of {relation} is not after {pin}")


def require_rows(folder: str, counted: int, rows: int | None) -> None:
    """Raise `invariant` unless the parts hold as many rows as were written, if that is known."""
    if rows is not None and rows != counted:
        raise InternalError(
            "invariant",
            f"{folder} holds {counted} rows, not the {rows} that were written",
            hint="The store must be a location that the driver and all executors share.",
        )


def readable(relation: str, log: RelationLog, after: int, upto: int) -> tuple[LogFile, ...]:
    """Return the files of the epochs in (after, upto]; raise if one holds other epochs too."""
    for epoch in (after, upto):
        if file := log.merged_across(epoch):
            raise NeedsReinit(
                "epoch-expired",
                f"epoch {epoch} of relation {relation} is no longer available",
                detail=f"Epochs {file.first_epoch} to {file.last_epoch} were compacted.",
                hint="Read it at its published epoch.",
            )
    return log.between(after, upto)


def lease_lost(relation: str, pin: Pin) -> Unavailable:
    """Return the error for a version beyond the pin: another writer, or no rollback yet."""
    return Unavailable(
        "lease-lost",
        f"relation {relation} is no longer at version {pin.version}",
        detail="Another process has written to the relation; this process wrote nothing.",
    )
