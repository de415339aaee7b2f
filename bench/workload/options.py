"""What a run is asked to do: `SF=0.01 ONLY=q4,q9 BATCHES=3 …`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Options:
    """One run: `scale` and `seed` say what data, `only` which queries, all if empty.

    `rows` is the number of rows that a batch inserts into a large table; smaller tables get fewer.
    With `near_misses` values that are compared differ in their last digit. `heap` is the size of
    the driver. The result is also written to `out`.
    """

    scale: str = "0.01"
    seed: int = 1
    batches: int = 3
    rows: int = 100
    only: frozenset[str] = frozenset()
    near_misses: bool = False
    heap: str | None = None
    out: Path | None = None

    def __post_init__(self) -> None:
        if self.batches < 0 or self.rows < 1:
            raise SystemExit("BATCHES is at least 0, ROWS at least 1")

    def wanted(self, queries: dict[str, str]) -> dict[str, str]:
        """Return the queries that the run is about."""
        if unknown := self.only - set(queries):
            raise SystemExit(f"unknown queries: {', '.join(sorted(unknown))}")
        return {
            name: query for name, query in queries.items() if not self.only or name in self.only
        }


def options(arguments: Iterable[str]) -> Options:
    """Return the options of a command line of NAME=value."""
    given: dict[str, object] = {}
    for argument in arguments:
        name, equals, value = argument.partition("=")
        match name:
            case "SF" | "SCALE":
                given["scale"] = value
            case "BATCHES" | "ROWS" | "SEED":
                given[name.lower()] = int(value)
            case "ONLY":
                given["only"] = frozenset(value.split(","))
            case "NEAR_MISSES":
                given["near_misses"] = value not in {"", "0"}
            case "HEAP":
                given["heap"] = value
            case "OUT":
                given["out"] = Path(value).expanduser()
            case _:
                raise SystemExit(f"unknown option {name}{equals}")
    return Options(**given)  # type: ignore[arg-type]
