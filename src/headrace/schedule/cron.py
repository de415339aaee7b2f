"""Cron: at which moments a line of five fields, or six with seconds, fires in a time zone. Pure.

A library reads the line and finds the wall-clock times that fit it. Which moments those are when
clocks are changed is decided here, in the way of Debian's cron: a line whose minute or hour begins
with `*` follows the wall clock as it is, so it leaves out an hour that is skipped and fires in both
of an hour that is repeated. Any other line fires once for each time that it names: at the first
moment after a skipped hour, and in the first of two repeated ones.

    30 2 * * *    skipped 2:00-3:00: at 3:00    repeated 2:00-3:00: at the first 2:30
    */30 2 * * *  skipped 2:00-3:00: not        repeated 2:00-3:00: at 2:00, 2:30, 2:00, 2:30
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

MINUTE = timedelta(minutes=1)
# Start of the search whether a line can fire at all; the library searches 50 years ahead.
_SOME_DAY = datetime(2024, 1, 1)  # noqa: DTZ001


@dataclass(frozen=True)
class Cron:
    """Minute, hour, day, month and weekday, perhaps behind seconds, by the wall clock of a zone."""

    fields: str
    zone: str

    def __str__(self) -> str:
        return f"{self.fields} {self.zone}"

    def fires_after(self, moment: datetime) -> datetime | None:
        """Return the first fire later than a moment, in UTC; None if there is none in 50 years."""
        return _fires_after(self, moment.astimezone(UTC))

    @property
    def follows_the_clock(self) -> bool:
        """Whether the line fires by every wall-clock time that fits, be it skipped or repeated."""
        return any(field.startswith("*") for field in self.fields.split()[-5:-3])


def complaint(fields: str) -> str | None:
    """Return the error in the fields of a line; None if they are valid."""
    try:
        next(CronSim(fields, _SOME_DAY))
    except CronSimError as error:
        return str(error).lower()
    except StopIteration:
        return "no day ever fits"
    return None


@lru_cache(maxsize=4096)
def _fires_after(cron: Cron, moment: datetime) -> datetime | None:
    zone = ZoneInfo(cron.zone)
    # In the first of two repeated hours the second is still to come, with wall-clock times that
    # have passed once already: search from the wall-clock time that the second hour gives.
    offset = moment.astimezone(zone).replace(fold=1).utcoffset()
    assert offset is not None
    clock = moment.replace(tzinfo=None) + offset
    folds = (0, 1) if cron.follows_the_clock else (0,)
    fires = [_first(cron, zone, clock, fold, moment) for fold in folds]
    return min((fire for fire in fires if fire is not None), default=None)


def _first(
    cron: Cron, zone: ZoneInfo, clock: datetime, fold: int, moment: datetime
) -> datetime | None:
    """Return the first fire after a moment among wall-clock times after `clock`, in one fold."""
    for time in CronSim(cron.fields, clock):
        fire = time.replace(tzinfo=zone, fold=fold)
        if not _exists(fire):
            if cron.follows_the_clock:
                continue
            fire = fire.replace(second=0)
            while not _exists(fire):
                fire += MINUTE
        if (fire_in_utc := fire.astimezone(UTC)) > moment:
            return fire_in_utc
    return None


def _exists(time: datetime) -> bool:
    """Return whether a wall-clock time exists, that is, is not skipped."""
    there_and_back = time.astimezone(UTC).astimezone(time.tzinfo)
    return there_and_back.replace(tzinfo=None) == time.replace(tzinfo=None)
