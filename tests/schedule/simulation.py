"""A small world with a clock of its own, in which what is due is refreshed at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from headrace.schedule.due import Due, Member, ScheduledGroup, due, next_due
from headrace.schedule.schedule import Calculated, Timed, parse_schedule

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
LAZY = timedelta(seconds=5)


def timed(*texts: str) -> frozenset[Timed]:
    """The effective schedules that these texts say."""
    found = [parse_schedule(text, "UTC") for text in texts]
    return frozenset(one for one in found if one is not None and not isinstance(one, Calculated))


@dataclass
class World:
    """Groups, what runs until when, and the log of all starts."""

    groups: tuple[ScheduledGroup, ...]
    takes: timedelta = timedelta()
    now: datetime = START
    ends: dict[tuple[str, ...], datetime] = field(default_factory=dict)
    log: list[tuple[datetime, Due]] = field(default_factory=list)

    def tick(self) -> tuple[Due, ...]:
        """Take note of what has ended, and start what is due."""
        ended = {one for one, end in self.ends.items() if end <= self.now}
        for relations in ended:
            del self.ends[relations]
            self._change(relations, running=False)
        found = due(self.now, self.groups, LAZY)
        for one in found:
            self.log.append((self.now, one))
            self.ends[one.relations] = self.now + self.takes
            self._change(
                one.relations, last=self.now, read=False, retry_at=None, running=bool(self.takes)
            )
        return found

    def run(self, until: datetime) -> None:
        """Tick whenever something can be due or has ended, and never in between."""
        self.tick()
        for moment in self._moments(until):
            self.now = moment
            self.tick()
        self.now = until

    def starts(self, relation: str) -> list[datetime]:
        return [moment for moment, one in self.log if relation in one.relations]

    def member(self, relation: str) -> Member:
        return next(m for group in self.groups for m in group.members if m.relation == relation)

    def change(self, relation: str, **changes: object) -> None:
        self._change((relation,), **changes)

    def _moments(self, until: datetime) -> Iterator[datetime]:
        while True:
            found = next_due(self.now, self.groups, LAZY)
            coming = [*self.ends.values(), *([] if found is None else [found])]
            moment = min((one for one in coming if one > self.now), default=until)
            if moment >= until:
                return
            yield moment

    def _change(self, relations: tuple[str, ...], **changes: object) -> None:
        self.groups = tuple(
            replace(
                group,
                members=tuple(
                    replace(one, **changes) if one.relation in relations else one  # type: ignore[arg-type]
                    for one in group.members
                ),
            )
            for group in self.groups
        )


def alone(*members: Member) -> tuple[ScheduledGroup, ...]:
    """Each by itself."""
    return tuple(ScheduledGroup((member,)) for member in members)
