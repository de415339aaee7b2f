"""What a run saw, as one JSON object and as a table for people."""

from __future__ import annotations

import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import headrace
from bench.tpch.changes import Shop
from bench.tpch.figures import SPLIT, Seen, figures, means, milliseconds
from bench.tpch.options import Options
from bench.tpch.postgres import LIMIT_SECONDS
from bench.tpch.rounds import Rounds, engine_of
from headrace.delta.differentiate import relations_of
from headrace.relations.definition import Definition, define

PACKAGES = ("pyspark", "deltalake", "pyarrow", "psycopg", "tpchgen-cli")


def summary(
    options: Options,
    shop: Shop,
    rounds: Rounds,
    seen: dict[str, Seen],
    ticks: tuple[list[float], int] | None,
    settings: dict[str, str],
    hr: headrace.Headrace,
    parts: dict[str, float],
) -> dict[str, Any]:
    """The whole result, ready for JSON."""
    state = engine_of(hr).catalog.state()
    tables = {table.name: table for table in state.stream_tables}
    sources = {source.relation: source.name for source in state.sources}
    written = rounds.written[-1]
    found = {
        name: figures(
            one,
            [sources[i] for i in tables[name].inputs if i in sources],
            _stages(define(tables[name], state), sources),
        )
        for name, one in seen.items()
    }
    counted = [
        one
        for one in found.values()
        if "reads" in one and not written.keys().isdisjoint(one["reads"])
    ]
    idle = None if ticks is None else {"ms": milliseconds(ticks[0]), "spark_jobs": ticks[1]}
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "scale": options.scale,
        "change": shop.orders / shop.sizes["orders"],
        "orders_each_way": shop.orders,
        "rows_a_batch": written,
        "mode": options.mode,
        "warmup": options.warmup,
        "rounds": options.rounds,
        "machine": machine(options),
        "versions": versions(hr),
        "postgres_settings": settings,
        "postgres_limit_s": LIMIT_SECONDS,
        "seconds": {name: round(spent, 1) for name, spent in parts.items()},
        "ingest_ms": milliseconds(rounds.ingest_seconds[options.warmup :]),
        "tick": idle,
        "queries": found,
        **means(counted),
        "failures": sum(not one.get("equal", False) for one in found.values())
        if "equality" not in options.skip
        else sum(bool(one["problems"]) for one in found.values()),
    }


def _stages(definition: Definition, sources: dict[str, str]) -> dict[str, tuple[str, list[str]]]:
    """For the relation of every stage what it is called, and what it reads."""
    names = {
        stage.relation: stage.relation.removeprefix(definition.relation) or "table"
        for stage in definition.stages
    }
    known = {**sources, **names}
    return {
        stage.relation: (
            names[stage.relation],
            sorted(known.get(one, one) for one in relations_of(stage.region)),
        )
        for stage in definition.stages
    }


def machine(options: Options) -> dict[str, Any]:
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "cores": os.cpu_count(),
        "memory_gb": round(pages * size / 2**30, 1),
        "platform": platform.platform(),
        "spark": options.master or "local[*]",
        "heap": options.heap,
    }


def versions(hr: headrace.Headrace) -> dict[str, str]:
    session = hr._spark.profile("tiny")  # noqa: SLF001
    java = session.sparkContext._jvm.System.getProperty("java.version")  # type: ignore[union-attr]  # noqa: SLF001
    with engine_of(hr).database.session() as connection:
        server = connection.execute("SHOW server_version").fetchone()
    assert server is not None
    return {
        "python": platform.python_version(),
        "java": str(java),
        "postgres": str(server[0]),
        **{name: version(name) for name in ("headrace", *PACKAGES)},
    }


def show(result: dict[str, Any]) -> None:
    """The table for people."""
    out = sys.stdout.write
    heads = ("cut", "plan", "read", "look", "reg", "splan", "srun", "commit", "publ", "rest")
    out(
        f"{'query':5} {'refresh':>7} |{''.join(f'{head:>7}' for head in heads)} |"
        f" {'jobs':>4} {'MB':>6} | {'full':>7} {'÷':>6} | {'pg':>7} {'÷':>6} | strategy, equal\n"
    )
    for name, one in result["queries"].items():
        if "refresh_ms" in one:
            split = "".join(f"{one['split_ms'][part]:7.0f}" for part in SPLIT)
            limit = ">" if one["postgres_timed_out"] else " "
            pg = LIMIT_SECONDS * 1000 if one["postgres_timed_out"] else one["postgres_ms"]
            out(
                f"{name:5} {one['refresh_ms']:7.0f} |{split} |"
                f" {one['spark_jobs']:4} {one['bytes_read'] / 1e6:6.1f} |"
                f" {_shown(one['full_ms'], 7, 0)} {_shown(one['full_over_refresh'], 6, 2)} |"
                f"{limit}{_shown(pg, 7, 0)} {_shown(one['postgres_over_refresh'], 6, 2)} |"
                f" {'+'.join(one['strategy'])}, {one['equal']}\n"
            )
        for problem in (*one["problems"], *one.get("full_problems", ())):
            out(f"      {problem}\n")
    for name in ("full_over_refresh", "postgres_over_refresh"):
        out(f"{name}: mean {result[name]}, lowest {result[f'{name}_lowest']}\n")
    out(f"ingest {result['ingest_ms']} ms; tick {result['tick']}\n")


def _shown(value: float | None, width: int, digits: int) -> str:
    return f"{'–':>{width}}" if value is None else f"{value:{width}.{digits}f}"
