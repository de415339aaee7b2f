"""A soak drawn over time: `python -m bench.soak.chart result.json picture.svg`.

One strip a figure, with its largest value; lines mark faults, red ones those that end the daemon
or its JVM, blue ones checkpoints.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

STRIPS = (
    ("daemon_rss_mb", "daemon: resident MB"),
    ("jvm_rss_mb", "JVM: resident MB"),
    ("jvm_old_mb", "JVM: old generation MB"),
    ("daemon_descriptors", "daemon: descriptors"),
    ("jvm_descriptors", "JVM: descriptors"),
    ("daemon_threads", "daemon: threads"),
    ("sessions", "sessions in PostgreSQL"),
    ("store_files", "store: files"),
    ("store_mb", "store: MB"),
    ("wal_sources", "sources read from the WAL"),
    ("slot_wal_mb", "WAL kept by the slot: MB"),
    ("buffer_mb", "change buffers: MB"),
    ("catalog_mb", "catalog: MB"),
    ("headrace_log_mb", "logs of Headrace: MB"),
)
LEFT, TOP, WIDTH, HEIGHT, GAP = 190, 46, 760, 46, 14
RED = frozenset({"kill_daemon", "stop_daemon", "kill_jvm"})


def chart(result: dict[str, Any]) -> str:
    """Return the SVG of a result."""
    samples = result["samples"]
    seconds = max([result["hours"] * 3600, *(sample["at"] for sample in samples)])
    strips = [s for s in STRIPS if any(one.get(s[0]) is not None for one in samples)]
    bottom = TOP + len(strips) * (HEIGHT + GAP)
    title = (
        f"{result['hours']:g} h of soak, capture by {result['mode']}, seed {result['seed']}:"
        f" {len(result['events'])} faults, {'all bounds kept' if result['ok'] else 'bounds broken'}"
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 20} {bottom + 24}"'
        ' font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        _text(12, 20, title, size=13),
    ]
    for event in result["events"]:
        parts.append(_mark(event["at"], seconds, bottom, event["kind"] in RED, event["kind"]))
    for check in result["checks"]:
        x = _x(check["at"], seconds)
        parts.append(
            f'<line x1="{x}" y1="{TOP}" x2="{x}" y2="{bottom}" stroke="#1f6feb" stroke-width="1"/>'
        )
    for number, (name, words) in enumerate(strips):
        parts += _strip(samples, name, words, seconds, TOP + number * (HEIGHT + GAP))
    for part in range(5):
        at = seconds * part / 4
        parts.append(_text(_x(at, seconds), bottom + 14, f"{at / 60:.0f} min", "middle"))
    return "\n".join([*parts, "</svg>", ""])


def _strip(
    samples: list[dict[str, Any]], name: str, words: str, seconds: float, top: float
) -> list[str]:
    values = [(one["at"], one[name]) for one in samples if one.get(name) is not None]
    most = max(value for _, value in values) or 1
    points = " ".join(
        f"{_x(at, seconds)},{top + HEIGHT * (1 - value / most):.1f}" for at, value in values
    )
    return [
        f'<line x1="{LEFT}" y1="{top + HEIGHT}" x2="{LEFT + WIDTH}" y2="{top + HEIGHT}"'
        ' stroke="#d0d7de"/>',
        f'<polyline points="{points}" fill="none" stroke="#24292f" stroke-width="1"/>',
        _text(12, top + HEIGHT / 2, words),
        _text(12, top + HEIGHT / 2 + 13, f"at most {most:g}", colour="#57606a"),
    ]


def _mark(at: float, seconds: float, bottom: float, red: bool, kind: str) -> str:
    x, colour = _x(at, seconds), "#f0b4b4" if red else "#eaeef2"
    return (
        f'<line x1="{x}" y1="{TOP}" x2="{x}" y2="{bottom}" stroke="{colour}">'
        f"<title>{kind}</title></line>"
    )


def _x(at: float, seconds: float) -> float:
    return round(LEFT + WIDTH * at / seconds, 1)


def _text(
    x: float, y: float, words: str, anchor: str = "start", size: int = 11, colour: str = "#24292f"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"'
        f' fill="{colour}">{words}</text>'
    )


def main() -> None:
    source, target = map(Path, sys.argv[1:])
    target.write_text(chart(json.loads(source.read_text())))


if __name__ == "__main__":
    main()
