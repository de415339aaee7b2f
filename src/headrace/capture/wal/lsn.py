"""Positions in the write-ahead log: whole numbers here, `16/B374D848` in PostgreSQL (pure)."""

from __future__ import annotations


def from_text(text: str) -> int:
    """The number of a position that PostgreSQL wrote."""
    high, low = text.split("/")
    return int(high, 16) << 32 | int(low, 16)


def to_text(position: int) -> str:
    """A position as PostgreSQL reads and writes it."""
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"
