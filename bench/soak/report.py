"""A soak's result for people."""

from __future__ import annotations

import sys
from collections import defaultdict
from statistics import median
from typing import Any


def lines(result: dict[str, Any]) -> list[str]:
    """Return the lines of the report: bounds, faults with their recovery, what went wrong."""
    found = [f"{'bound':48} {'seen':>10} {'limit':>10}"]
    for one in result["bounds"]:
        mark = "" if one["kept"] else "  EXCEEDED"
        found.append(f"{one['name']:48} {one['seen']:10g} {one['limit']:10g}{mark}")
    found.append(f"{'fault':20} {'times':>5} {'recovered, median s':>20} {'most':>6}  answered by")
    for kind, events in _by_kind(result["events"]).items():
        times = [one["recovered"] for one in events if one["recovered"] is not None]
        middle = f"{median(times):.1f}" if times else "–"
        most = f"{max(times):.1f}" if times else "–"
        answered = "an operator" if any(one["operator"] for one in events) else "nobody"
        found.append(f"{kind:20} {len(events):5} {middle:>20} {most:>6}  {answered}")
    for check in result["checks"]:
        found.append(
            f"checkpoint at {check['at']:.0f} s: settled in {check['settled']} s, {check['rows']}"
            f" rows equal but {len(check['differences'])} tables"
        )
        found += [f"  {one}" for one in (*check["differences"], *check["inactive"])]
        if check["trouble"]:
            found.append(f"  {check['trouble']}")
    found += [f"failed: {one}" for one in result["failed"]]
    found += [f"left out: {one}" for one in result["faults_left_out"]]
    for one in result["daemon"]["unexpected_exits"]:
        found.append(
            f"exit code {one['code']} of the daemon at {one['at']:.0f} s, started at"
            f" {one['started']:.0f} s, {'serving' if one['serving'] else 'not yet serving'},"
            f" {one['cause'] or 'by itself'}"
        )
        found += [f"  {line}" for line in one["said"].splitlines()]
    if not result["ok"]:
        found += ["end of the daemon's log:", *(f"  {one}" for one in result["daemon"]["log_end"])]
    statements = result["statements"]
    for one in statements["failed_because_of_headrace"]:
        found.append(f"failed at {one['at']:.0f} s: {one['statement'][:80]}: {one['message']}")
    for one in statements["waited_over_1_s_for_headrace"]:
        statement = f"{one['session']}: {one['statement'][:100]}"
        found.append(f"waited {one['seconds']:.1f} s at {one['at']:.0f} s: {statement}")
        found.append(f"  behind {one['blocker'][:160]}")
    found.append(
        f"{statements['count']} statements, slowest {statements['slowest_s']} s;"
        f" {result['reader']['snapshots']} snapshots read; daemon started"
        f" {result['daemon']['starts']} times; {'OK' if result['ok'] else 'NOT OK'}"
    )
    return found


def show(result: dict[str, Any]) -> None:
    sys.stdout.write("\n".join(lines(result)) + "\n")


def _by_kind(events: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found = defaultdict(list)
    for one in events:
        found[one["kind"]].append(one)
    return dict(sorted(found.items()))
