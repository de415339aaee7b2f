"""Options of a load: `RATES=100,1000 RATE_SECONDS=60 MODE=both …`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

MODES = {"trigger": ("trigger",), "wal": ("wal",), "both": ("trigger", "wal")}
PARTS = frozenset({"views", "ivm"})
FEWEST_ORDERS = 1000


@dataclass(frozen=True)
class Options:
    """One run: `rates` in row changes a second, each for `rate_seconds`, lowest first.

    `writers` commit transactions of up to `transaction` row changes. A writer that is more than
    `backlog` seconds late leaves transactions out. `marks` marker rows are committed a second.
    After each rate, what is served has `drain` seconds to catch up. `orders` is the size of the
    largest but one source table; the others follow it. `skip` names competitors to leave out.
    """

    rates: tuple[int, ...] = (100, 1000, 5000, 20_000)
    rate_seconds: float = 60.0
    mode: str = "both"
    writers: int = 4
    transaction: int = 50
    backlog: float = 2.0
    marks: float = 4.0
    warmup: float = 30.0
    drain: float = 120.0
    orders: int = 100_000
    seed: int = 1
    skip: frozenset[str] = frozenset()
    out: Path | None = None

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise SystemExit(f"MODE is one of {', '.join(MODES)}, not {self.mode}")
        if not self.skip <= PARTS:
            raise SystemExit(f"SKIP names some of {', '.join(sorted(PARTS))}")
        if not self.rates or min(self.rates) < 1 or list(self.rates) != sorted(set(self.rates)):
            raise SystemExit("RATES are whole numbers above 0 in ascending order")
        if min(self.rate_seconds, self.backlog, self.marks, self.drain) <= 0 or self.warmup < 0:
            raise SystemExit(
                "RATE_SECONDS, BACKLOG, MARKS and DRAIN are above 0, WARMUP at least 0"
            )
        if self.writers < 1 or self.transaction < 1:
            raise SystemExit("WRITERS and TRANSACTION are at least 1")
        if self.orders < FEWEST_ORDERS:
            raise SystemExit(f"ORDERS is at least {FEWEST_ORDERS}")

    @property
    def capture_modes(self) -> tuple[str, ...]:
        return MODES[self.mode]


def options(arguments: Iterable[str]) -> Options:
    """Return the options of a command line of NAME=value."""
    given: dict[str, object] = {}
    for argument in arguments:
        name, equals, value = argument.partition("=")
        try:
            match name:
                case "RATES":
                    given["rates"] = tuple(map(int, value.split(",")))
                case "RATE_SECONDS" | "BACKLOG" | "MARKS" | "WARMUP" | "DRAIN":
                    given[name.lower()] = float(value)
                case "WRITERS" | "TRANSACTION" | "ORDERS" | "SEED":
                    given[name.lower()] = int(value)
                case "MODE":
                    given["mode"] = value
                case "SKIP":
                    given["skip"] = frozenset(value.split(","))
                case "OUT":
                    given["out"] = Path(value).expanduser()
                case _:
                    raise SystemExit(f"unknown option {name}{equals}")
        except ValueError:
            raise SystemExit(f"{argument} is not a number") from None
    return Options(**given)  # type: ignore[arg-type]
