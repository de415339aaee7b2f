"""How the rows of a log lie in its files, as far as their writers could see to it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Arrangement:
    """Large files are sorted by the columns of `order`, and before these kept `apart` by one.

    It belongs to the log from its making on, and matters for speed alone.
    """

    order: tuple[str, ...] = ()
    apart: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that rows are sorted by, each once."""
        first = () if self.apart is None else (self.apart,)
        return tuple(dict.fromkeys(first + self.order))

    @property
    def ranges(self) -> tuple[str, ...]:
        """The columns that tell rows of one file from those of others."""
        return self.order if self.apart is None else (self.apart,)


AS_THEY_COME = Arrangement()
