"""A result drawn as bars: `python -m bench.tpch.chart bench/results/<name>.json docs/<name>.svg`.

For every query the milliseconds of a refresh, of a full recompute on Spark and of PostgreSQL's
materialized view, on a logarithmic scale. An arrow marks what PostgreSQL gave up.
"""

from __future__ import annotations

import json
import sys
from math import ceil, floor, log10
from pathlib import Path
from typing import Any

BARS = (
    ("refresh_ms", "refresh", "#1f6feb"),
    ("full_ms", "full recompute on Spark", "#d29922"),
    ("postgres_ms", "PostgreSQL, materialized view", "#8b949e"),
)
LEFT, TOP, WIDTH, THICK, GAP = 44, 52, 620, 6, 7
ROW = len(BARS) * THICK + GAP


def chart(result: dict[str, Any]) -> str:
    """The SVG of a result."""
    queries = {name: one for name, one in result["queries"].items() if "refresh_ms" in one}
    limit = result["postgres_limit_s"] * 1000.0
    values = [_value(one, key, limit) for one in queries.values() for key, _, _ in BARS]
    known = [value for value in values if value]
    low, high = floor(log10(min(known))), ceil(log10(max(known)))
    height = TOP + ROW * len(queries) + 24
    title = (
        f"TPC-H at scale {result['scale']}, {100 * result['change']:g} % of orders changed:"
        f" milliseconds on {result['machine']['cores']} cores"
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 60} {height}"'
        ' font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        _text(LEFT, 18, title, size=13),
        *_legend(),
        *_axis(low, high, height),
    ]
    for number, (name, one) in enumerate(queries.items()):
        top = TOP + number * ROW
        parts.append(_text(LEFT - 6, top + 14, name, anchor="end"))
        for place, (key, _, colour) in enumerate(BARS):
            value = _value(one, key, limit)
            if value is None:
                continue
            y, length = top + place * THICK, _length(value, low, high)
            parts.append(
                f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{THICK - 1}"'
                f' fill="{colour}"/>'
            )
            if key == "postgres_ms" and one["postgres_timed_out"]:
                parts.append(_text(LEFT + length + 3, y + THICK, "→", size=10))
        ratio = one["full_over_refresh"]
        if ratio is not None:
            parts.append(_text(LEFT + WIDTH + 50, top + 14, f"{ratio:g} ×", anchor="end"))
    return "\n".join([*parts, "</svg>", ""])


def _value(one: dict[str, Any], key: str, limit: float) -> float | None:
    if key == "postgres_ms" and one["postgres_timed_out"]:
        return limit
    value: float | None = one[key]
    return value


def _length(value: float, low: int, high: int) -> float:
    return max(1.0, WIDTH * (log10(value) - low) / max(1, high - low))


def _legend() -> list[str]:
    parts, x = [], LEFT
    for _, words, colour in BARS:
        parts += [
            f'<rect x="{x}" y="28" width="10" height="10" fill="{colour}"/>',
            _text(x + 14, 37, words),
        ]
        x += 40 + 6 * len(words)
    return [*parts, _text(LEFT + WIDTH + 50, 37, "full ÷ refresh", anchor="end")]


def _axis(low: int, high: int, height: int) -> list[str]:
    parts = []
    for power in range(low, high + 1):
        x = LEFT + WIDTH * (power - low) / max(1, high - low)
        parts += [
            f'<line x1="{x:.1f}" y1="{TOP - 4}" x2="{x:.1f}" y2="{height - 20}" stroke="#d0d7de"/>',
            _text(x, height - 8, f"{10**power:,}" if power >= 0 else f"{10.0**power:g}", "middle"),
        ]
    return parts


def _text(x: float, y: float, words: str, anchor: str = "start", size: int = 11) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"'
        f' fill="#24292f">{words}</text>'
    )


def main() -> None:
    source, target = map(Path, sys.argv[1:])
    target.write_text(chart(json.loads(source.read_text())))


if __name__ == "__main__":
    main()
