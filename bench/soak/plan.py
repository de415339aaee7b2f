"""The events of a soak, all from its seed.

Faults come in shuffled rounds, so that every kind occurs about equally often and at least once.
Kinds that end the daemon or its JVM occur in the first two thirds only: the last third shows one
life of both, in which memory and descriptors must stay flat.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from random import Random

CHECKPOINT = "checkpoint"
SWITCH = "switch_to_wal"
# Seconds between two checkpoints; the end of a soak is one more.
BETWEEN_CHECKPOINTS = 900.0
# Seconds for which a fault lasts that has a duration; the shorter ones where there is little room.
HOLD = (5.0, 20.0)


@dataclass(frozen=True)
class Event:
    """Something that happens `at` so many seconds of the soak.

    `seed` decides everything else about it; a fault with a duration lasts `hold` seconds.
    """

    at: float
    kind: str
    seed: int = 0
    hold: float = 0.0

    def random(self) -> Random:
        """Return the random numbers of this event."""
        return Random(self.seed)  # noqa: S311  a plan is repeatable


def calm_from(seconds: float) -> float:
    """Return the time from which on neither the daemon nor its JVM is ended."""
    return seconds * 2 / 3


def plan(
    seed: int,
    seconds: float,
    gap: float,
    kinds: Sequence[str],
    ending: Collection[str],
    *,
    switch: bool = False,
) -> tuple[Event, ...]:
    """Return the faults and checkpoints of a soak, in their order.

    `ending` are the kinds that end a process of the daemon. With `switch` the mode of capture is
    changed after half of the time.
    """
    random = Random(seed)  # noqa: S311  a plan is repeatable
    steady = [kind for kind in kinds if kind not in ending]
    count = max(len(kinds), int(seconds / gap))
    late = list(islice(_rounds(random, steady), count // 3)) if steady else []
    missing = [kind for kind in kinds if kind not in late]
    more = max(0, count - len(late) - len(missing))
    early = missing + list(islice(_rounds(random, kinds), more))
    random.shuffle(early)
    events = [
        *_spread(random, early, 0.0, calm_from(seconds)),
        *_spread(random, late, calm_from(seconds), seconds),
        *([Event(seconds / 2, SWITCH)] if switch else []),
        *(
            Event(number * BETWEEN_CHECKPOINTS, CHECKPOINT)
            for number in range(1, int(seconds / BETWEEN_CHECKPOINTS) + 1)
            if number * BETWEEN_CHECKPOINTS < seconds
        ),
    ]
    return tuple(sorted(events, key=lambda event: event.at))


def _rounds(random: Random, kinds: Sequence[str]) -> Iterator[str]:
    while kinds:
        yield from random.sample(kinds, len(kinds))


def _spread(random: Random, kinds: Sequence[str], begin: float, end: float) -> Iterator[Event]:
    """One event in each of as many equal parts of the time as there are kinds."""
    width = (end - begin) / max(1, len(kinds))
    for number, kind in enumerate(kinds):
        at = begin + (number + random.random() / 2) * width
        hold = max(HOLD[0], min(random.uniform(*HOLD), width / 3))
        yield Event(round(at, 2), kind, random.getrandbits(32), round(hold, 2))
