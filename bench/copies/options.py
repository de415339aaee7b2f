"""Options of a comparison of copies: `ROWS=1000000 ROUNDS=3 …`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Options:
    """One run: tables of `rows` rows, each copied `rounds` times after one of warm-up.

    `dsn` is an empty database instead of that of an embedded server, `driver` PostgreSQL's JDBC
    driver instead of one that is found on this machine. The result is also written to `out`.
    """

    rows: int = 1_000_000
    rounds: int = 3
    dsn: str | None = None
    driver: Path | None = None
    out: Path | None = None

    def __post_init__(self) -> None:
        if self.rows < 1 or self.rounds < 1:
            raise SystemExit("ROWS and ROUNDS are at least 1")
        if self.driver is not None and not self.driver.is_file():
            raise SystemExit(f"DRIVER={self.driver} is no file")


def options(arguments: Iterable[str]) -> Options:
    """Return the options of a command line of NAME=value."""
    given: dict[str, object] = {}
    for argument in arguments:
        name, equals, value = argument.partition("=")
        match name:
            case "ROWS" | "ROUNDS":
                if not value.isdigit():
                    raise SystemExit(f"{argument} is not a number")
                given[name.lower()] = int(value)
            case "DSN":
                given["dsn"] = value
            case "DRIVER" | "OUT":
                given[name.lower()] = Path(value).expanduser()
            case _:
                raise SystemExit(f"unknown option {name}{equals}")
    return Options(**given)  # type: ignore[arg-type]
