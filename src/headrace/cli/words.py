"""Numbers, times and names as people read them."""

from __future__ import annotations

from datetime import datetime, timedelta


def seconds(value: float) -> str:
    """Return a duration in three digits or so: 0.4 ms, 87 ms, 2.31 s, 3 min 20 s."""
    if value < 0.00005:
        return "0 ms"
    if value < 0.00995:
        return f"{value * 1000:.1f} ms"
    if value < 0.9995:
        return f"{value * 1000:.0f} ms"
    if value < 9.995:
        return f"{value:.2f} s"
    if value < 99.95:
        return f"{value:.1f} s"
    return age(timedelta(seconds=value))


def age(value: timedelta) -> str:
    """Return a lag by its two largest units: 4 s, 3 min 20 s, 5 h 2 min, 12 d 3 h."""
    whole = max(round(value.total_seconds()), 0)
    units = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
    parts: list[str] = []
    for name, size in units:
        count, whole = divmod(whole, size)
        if count or parts:
            parts.append(f"{count} {name}")
        if len(parts) == 2:
            break
    return " ".join(part for part in parts if not part.startswith("0 ")) or "0 s"


def roughly(value: timedelta) -> str:
    """Return a lag by its largest unit, rounded down: 4 s, 3 min, 5 h, 12 d."""
    whole = max(round(value.total_seconds()), 0)
    units = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
    return next((f"{whole // size} {name}" for name, size in units if whole >= size), "0 s")


def moment(value: datetime | None) -> str:
    """Return a point in time in the reader's own time zone, to the second."""
    return "-" if value is None else value.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def counted(number: int, singular: str, many: str | None = None) -> str:
    """Return a number with its noun: 1 row, 2 rows, 12,345 rows."""
    return f"{number:,} {singular if number == 1 else many or singular + 's'}"


def change(inserted: int, deleted: int) -> str:
    """Return the rows that came and went: +12 −3; nothing is a dash."""
    return f"+{inserted:,} −{deleted:,}" if inserted or deleted else "-"


def plain(text: str) -> str:
    """Return text from a database, safe to show: control characters are spelled out."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )
