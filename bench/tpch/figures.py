"""The figures of every query, and means over them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, log
from statistics import median
from typing import Any

from bench.tpch.postgres import LIMIT_SECONDS
from bench.tpch.rounds import Taken

SPLIT = (
    "cut",
    "plan",
    "read",
    "look up",
    "register",
    "spark_plan",
    "spark_run",
    "commit",
    "publish",
    "rest",
)


@dataclass
class Seen:
    """What was seen of one query; the first `warmup` refreshes do not count.

    How long it took to create it is not known if an earlier run did.
    """

    create_seconds: float | None
    warmup: int
    taken: list[Taken] = field(default_factory=list)
    full: dict[str, list[float]] = field(default_factory=dict)
    full_problems: list[str] = field(default_factory=list)
    asked_postgres: bool = False
    postgres: list[float] | None = None
    judged_by: str | None = None
    problems: list[str] = field(default_factory=list)

    @property
    def measured(self) -> list[Taken]:
        return self.taken[self.warmup :]


def geometric_mean(values: Iterable[float]) -> float | None:
    """The mean of ratios; None of nothing."""
    known = list(values)
    return exp(sum(map(log, known)) / len(known)) if known else None


def figures(
    one: Seen, reads: Sequence[str], stages: Mapping[str, tuple[str, list[str]]]
) -> dict[str, Any]:
    """The figures of one query; times in milliseconds, medians of the rounds that count.

    `stages` has for the relation of every stage what it is called and what it reads.
    """
    measured = one.measured
    if not measured:
        return {"problems": [*one.problems, "was never refreshed"]}
    refresh = milliseconds(taken.seconds for taken in measured)
    full = {way: milliseconds(times) for way, times in one.full.items() if times}
    best = min(full.values(), default=None)
    postgres = None if one.postgres is None else milliseconds(one.postgres)
    waited = LIMIT_SECONDS * 1000.0 if one.asked_postgres and postgres is None else postgres
    return {
        "reads": list(reads),
        "create_s": _rounded(one.create_seconds),
        "refresh_ms": refresh,
        "refreshes_ms": [round(taken.seconds * 1000, 1) for taken in one.taken],
        "split_ms": {
            name: milliseconds(taken.split.get(name, 0.0) for taken in measured) for name in SPLIT
        },
        "spark_jobs": int(median(taken.refresh.spark_jobs for taken in measured)),
        "spark_tasks": int(median(taken.spark.tasks for taken in measured)),
        "bytes_read": int(median(taken.spark.bytes_read for taken in measured)),
        "bytes_shuffled": int(median(taken.spark.shuffled for taken in measured)),
        "rows_changed": int(
            median(t.refresh.rows_inserted + t.refresh.rows_deleted for t in measured)
        ),
        "stages": _stages(stages, measured),
        "last_spark_calls": measured[-1].calls,
        "strategy": dict(Counter(taken.refresh.mode for taken in measured)),
        "reason": measured[-1].refresh.reason,
        "full_ms": best,
        "full_over_files_ms": full.get("files"),
        "full_over_copies_ms": full.get("copies"),
        "full_over_refresh": _ratio(best, refresh),
        "postgres_ms": postgres,
        "postgres_timed_out": one.asked_postgres and postgres is None,
        "postgres_over_refresh": _ratio(waited, refresh),
        "compared_with": one.judged_by,
        "equal": None if one.judged_by is None else not one.problems,
        "problems": one.problems,
        "full_problems": one.full_problems,
    }


def _stages(
    stages: Mapping[str, tuple[str, list[str]]], measured: list[Taken]
) -> list[dict[str, Any]]:
    """Every stage that ran, in the order in which they are computed."""
    figures = []
    for relation, (name, reads) in stages.items():
        runs = [run for t in measured for run in t.refresh.stages if run.relation == relation]
        if runs:
            figures.append(
                {
                    "stage": name,
                    "reads": reads,
                    "mode": runs[-1].mode,
                    "reason": runs[-1].reason,
                    "ms": milliseconds(run.seconds for run in runs),
                    "rows_read": int(median(run.rows_read for run in runs)),
                    "rows_written": int(median(run.rows_written for run in runs)),
                }
            )
    return figures


def means(counted: list[dict[str, Any]]) -> dict[str, Any]:
    """Geometric means and the worst query, over those whose sources changed.

    What PostgreSQL could not do within its limit counts as having taken just that. `computed` are
    the means over those for which there was something to compute.
    """
    result: dict[str, Any] = {"queries_counted": len(counted)}
    for ratio in ("full_over_refresh", "postgres_over_refresh"):
        known = [one[ratio] for one in counted if one[ratio] is not None]
        computed = [one[ratio] for one in counted if one[ratio] is not None and one["stages"]]
        result[ratio] = _rounded(geometric_mean(known))
        result[f"{ratio}_computed"] = _rounded(geometric_mean(computed))
        result[f"{ratio}_lowest"] = min(known, default=None)
    result["refresh_ms_mean"] = _rounded(geometric_mean(one["refresh_ms"] for one in counted))
    full = [one["full_ms"] for one in counted if one["full_ms"] is not None]
    result["full_ms_mean"] = _rounded(geometric_mean(full))
    return result


def milliseconds(seconds: Iterable[float]) -> float:
    return round(median(seconds) * 1000, 1)


def _ratio(value: float | None, refresh: float) -> float | None:
    return None if value is None else round(value / refresh, 2)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
