"""The figures of a run, and a table of them."""

from __future__ import annotations

import os
import sys
from collections import Counter
from statistics import median
from typing import Any

from bench.workload.options import Options
from bench.workload.run import Seen, Took, Workload

# Refreshes from the third on are warm.
WARM = 2


def report(
    workload: Workload, options: Options, seen: dict[str, Seen], stopped: bool = False
) -> dict[str, Any]:
    """Return all that a run saw, with sums over the queries; of a stopped run what there is."""
    queries = {name: _figures(one) for name, one in seen.items()}
    first = [one.refreshes[0][0] for one in seen.values() if one.refreshes]
    warm = [took for one in seen.values() for took, _ in one.refreshes[WARM:]]
    failed = [name for name, one in seen.items() if one.refused or one.problems]
    return {
        "workload": workload.name,
        "scale": options.scale,
        "seed": options.seed,
        "batches": options.batches,
        "near_misses": options.near_misses,
        "stopped": stopped,
        "cores": os.cpu_count(),
        "queries_run": len(seen),
        "equal": sum(
            name not in failed and len(one.refreshes) == options.batches
            for name, one in seen.items()
        ),
        "refused": {name: one.refused for name, one in seen.items() if one.refused},
        "failed": failed,
        "empty": [name for name, one in seen.items() if one.created and not one.rows],
        "unchanged": [name for name, one in seen.items() if one.created and not one.changes],
        "create": _sums([one.created for one in seen.values() if one.created]),
        "first_refresh": _sums(first),
        "warm_refresh": _sums(warm),
        "queries": queries,
    }


def _figures(one: Seen) -> dict[str, Any]:
    if one.created is None:
        return {"refused": one.refused}
    return {
        "create_s": round(one.created.wall, 2),
        "create_cpu_s": round(one.created.cpu, 2),
        "refresh_s": [round(took.wall, 2) for took, _ in one.refreshes],
        "refresh_cpu_s": [round(took.cpu, 2) for took, _ in one.refreshes],
        "modes": dict(Counter(done.mode for _, done in one.refreshes)),
        "stages": one.stages,
        "stages_run": [len(done.stages) for _, done in one.refreshes],
        "spark_jobs": [done.spark_jobs for _, done in one.refreshes],
        "result_rows": sum(one.rows.values()),
        "changed": one.changes,
        "problems": one.problems,
    }


def _sums(took: list[Took]) -> dict[str, float] | None:
    if not took:
        return None
    wall, cpu = [one.wall for one in took], [one.cpu for one in took]
    return {
        "median_s": round(median(wall), 2),
        "highest_s": round(max(wall), 2),
        "median_cpu_s": round(median(cpu), 2),
        "highest_cpu_s": round(max(cpu), 2),
    }


def show(result: dict[str, Any]) -> None:
    """Print a line for every query, then the sums."""
    out = sys.stdout.write
    out(
        f"{'query':6} {'create':>13} {'stages':>6} {'jobs':>5} {'rows':>5}  wall/CPU of refreshes\n"
    )
    for name, one in result["queries"].items():
        if "refused" in one:
            out(f"{name:6} refused: {one['refused']}\n")
            continue
        times = "  ".join(
            f"{wall:.2f}/{cpu:.2f}"
            for wall, cpu in zip(one["refresh_s"], one["refresh_cpu_s"], strict=True)
        )
        jobs = max(one["spark_jobs"], default=0)
        out(
            f"{name:6} {one['create_s']:6.2f}/{one['create_cpu_s']:6.2f} {one['stages']:6}"
            f" {jobs:5} {one['result_rows']:5}  {times}\n"
        )
        for problem in one["problems"]:
            out(f"       {problem}\n")
    for part in ("create", "first_refresh", "warm_refresh"):
        if result[part]:
            out(f"{part}: {result[part]}\n")
    if result["stopped"]:
        done = sum(len(one.get("refresh_s", ())) for one in result["queries"].values())
        out(f"stopped after {len(result['queries'])} queries and {done} refreshes\n")
    out(f"{result['equal']} of {result['queries_run']} equal and DIFFERENTIAL")
    out(f"; refused {len(result['refused'])}; failed {' '.join(result['failed']) or 'none'}\n")
