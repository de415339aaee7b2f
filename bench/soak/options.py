"""Options of a soak: `HOURS=2 MODE=wal SEED=7 …`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

MODES = ("trigger", "wal", "both")


@dataclass(frozen=True)
class Options:
    """One soak: `hours` under load, sources captured in `mode`, everything random from `seed`.

    In mode `both` sources are captured by triggers first, and from the WAL after half of the time.
    `only` and `skip` name kinds of faults. `gap` is the mean time between two faults in seconds; a
    short soak has a shorter one, so that every kind occurs. `out` is the JSON file of the result;
    the picture is written beside it. With `keep` the folder of the soak is left in place.
    """

    hours: float = 0.05
    mode: str = "trigger"
    seed: int = 1
    gap: float = 45.0
    writers: int = 4
    only: frozenset[str] = frozenset()
    skip: frozenset[str] = frozenset()
    keep: bool = False
    out: Path | None = None

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise SystemExit(f"MODE is one of {', '.join(MODES)}, not {self.mode}")
        if self.hours <= 0 or self.gap <= 0 or self.writers not in {1, 2, 4}:
            raise SystemExit("HOURS and GAP are more than 0, WRITERS is 1, 2 or 4")

    @property
    def seconds(self) -> float:
        return self.hours * 3600

    def includes(self, kind: str) -> bool:
        """Return whether this soak is about a kind of faults."""
        return (not self.only or kind in self.only) and kind not in self.skip

    def kinds(self, known: Iterable[str]) -> tuple[str, ...]:
        """Return the kinds of faults that this soak is about."""
        names = tuple(known)
        if unknown := (self.only | self.skip) - set(names):
            raise SystemExit(f"unknown faults: {', '.join(sorted(unknown))}")
        return tuple(filter(self.includes, names))


def options(arguments: Iterable[str]) -> Options:
    """Return the options of a command line of NAME=value."""
    given: dict[str, object] = {}
    for argument in arguments:
        name, equals, value = argument.partition("=")
        match name:
            case "HOURS" | "GAP":
                given[name.lower()] = float(value)
            case "MODE":
                given["mode"] = value
            case "SEED" | "WRITERS":
                given[name.lower()] = int(value)
            case "ONLY" | "SKIP":
                given[name.lower()] = frozenset(value.split(","))
            case "KEEP":
                given["keep"] = value not in {"", "0"}
            case "OUT":
                given["out"] = Path(value).expanduser()
            case _:
                raise SystemExit(f"unknown option {name}{equals}")
    return Options(**given)  # type: ignore[arg-type]
