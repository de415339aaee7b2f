"""What a run is asked to do: `SCALE=1 CHANGE=0.001 ONLY=q1,q5 …`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PARTS = frozenset({"full", "files", "postgres", "equality", "first", "tick"})
MODES = frozenset({"DIFFERENTIAL", "AUTO"})


@dataclass(frozen=True)
class Options:
    """One run of the bench.

    `change` is the part of all orders that a batch inserts, and deletes; `rows` is their number
    instead. `only` are the names of queries, all if empty; `skip` the parts that are left out:
    `equality`, or that after the `first` batch, `files` among the ways of a full recompute, …
    Full recomputes and materialized views are timed `times` times after one of warm-up.
    `master` is where Spark runs: an address, or "standalone" for a cluster of the run's own. `heap`
    is the size of the driver. Generated data is kept in `keep`, the whole project in `project`,
    where a later run goes on with it; the result is also written to `out`.
    """

    scale: str = "0.1"
    change: float = 0.001
    rows: int | None = None
    mode: str = "DIFFERENTIAL"
    warmup: int = 6
    rounds: int = 5
    times: int = 3
    only: frozenset[str] = frozenset()
    skip: frozenset[str] = frozenset()
    master: str | None = None
    heap: str | None = None
    keep: Path | None = None
    project: Path | None = None
    out: Path | None = None

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise SystemExit(f"MODE is one of {', '.join(sorted(MODES))}, not {self.mode}")
        if not self.skip <= PARTS:
            raise SystemExit(f"SKIP names some of {', '.join(sorted(PARTS))}")
        if self.rounds < 1 or self.warmup < 0 or self.times < 1:
            raise SystemExit("ROUNDS and TIMES are at least 1, WARMUP at least 0")

    @property
    def batches(self) -> int:
        return self.warmup + self.rounds


def options(arguments: Iterable[str]) -> Options:
    """The options of a command line of NAME=value."""
    given: dict[str, object] = {}
    for argument in arguments:
        name, equals, value = argument.partition("=")
        match name:
            case "SCALE" | "MODE" | "MASTER" | "HEAP":
                given[name.lower()] = value
            case "CHANGE":
                given["change"] = float(value)
            case "ROWS" | "WARMUP" | "ROUNDS" | "TIMES":
                given[name.lower()] = int(value)
            case "ONLY" | "SKIP":
                given[name.lower()] = frozenset(value.split(","))
            case "KEEP" | "PROJECT" | "OUT":
                given[name.lower()] = Path(value).expanduser()
            case _:
                raise SystemExit(f"unknown option {name}{equals}")
    return Options(**given)  # type: ignore[arg-type]
