"""Whether refreshes choose the better way, over TPC-H: `make bench-choice SCALE=0.1`.

The 22 queries are stream tables of one project, with `refresh_mode` AUTO. For changes of 0.01 %,
1 % and 20 % of the orders each is refreshed by its own choice while nothing of that size is known,
then in turn incrementally and in full over equal changes, and by its own choice again. A choice is
right if the way taken is within 10 % of the better one, by medians. The last line is one JSON
object; a wrong row fails the run.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

import headrace
from bench.tpch.changes import Shop, apply
from bench.tpch.equality import judge
from bench.tpch.measure import Progress, Sql, opened, wanted_queries
from bench.tpch.options import Options, options
from bench.tpch.report import machine, versions
from bench.tpch.rounds import engine_of, take_in
from headrace.catalog.records import Refresh

CHANGES = (0.0001, 0.01, 0.2)
WAYS = ("DIFFERENTIAL", "FULL")
NEAR = 1.1


@dataclass
class Compared:
    """One query under changes of one size: what it chose, and what either way took, in seconds."""

    first: Refresh | None = None
    learnt: Refresh | None = None
    took: dict[str, list[float]] = field(default_factory=lambda: {way: [] for way in WAYS})

    def is_right(self, choice: Refresh | None) -> bool | None:
        """Whether the way taken is near the better one; None if there was nothing to take in."""
        if choice is None or choice.mode not in WAYS or not all(self.took.values()):
            return None
        typical = {way: median(seconds) for way, seconds in self.took.items()}
        return typical[choice.mode] <= NEAR * min(typical.values())

    def document(self) -> dict[str, Any]:
        known = {way: [round(s * 1000) for s in seconds] for way, seconds in self.took.items()}
        return {
            "ms": known,
            "first": _told(self.first),
            "first_right": self.is_right(self.first),
            "learnt": _told(self.learnt),
            "learnt_right": self.is_right(self.learnt),
        }


def compare(
    hr: headrace.Headrace, sql: Sql, given: Options, wanted: Mapping[str, str], say: Progress
) -> dict[float, dict[str, Compared]]:
    """Every query under changes of every size."""
    for name, query in wanted.items():
        hr.create_stream_table(name, query, refresh_mode="AUTO")
        say.say(f"{name} created")
    shop = Shop.of(sql, CHANGES[0], None)
    shop = _batches(hr, sql, shop, given.warmup, lambda _: [hr.refresh(name) for name in wanted])
    found: dict[float, dict[str, Compared]] = {}
    for change in CHANGES:
        one = {name: Compared() for name in wanted}
        count = max(1, round(change * shop.sizes["orders"]))

        def work(number: int, one: dict[str, Compared] = one) -> None:
            for name, compared in one.items():
                if number == 0:
                    compared.first = hr.refresh(name)
                elif number <= 2 * given.rounds:
                    way = WAYS[number % 2]
                    compared.took[way].append(_computing(hr.refresh(name, way)))
                else:
                    compared.learnt = hr.refresh(name)

        shop = _batches(hr, sql, replace(shop, orders=count), 2 * given.rounds + 2, work)
        found[change] = one
        say.part(f"changes of {change:.2%}")
    return found


def _batches(
    hr: headrace.Headrace, sql: Sql, shop: Shop, count: int, work: Callable[[int], object]
) -> Shop:
    """Write and take in so many batches, with work after each; the shop for what follows."""
    for number in range(count):
        apply(sql, shop, number)
        take_in(engine_of(hr))
        work(number)
    return replace(shop, start=shop.start + count * shop.orders)


def _computing(refresh: Refresh) -> float:
    """What a refresh took without looking for a cut, which there is none of."""
    return sum(seconds for name, seconds in refresh.phases.items() if name != "cut")


def _told(refresh: Refresh | None) -> dict[str, Any] | None:
    if refresh is None or refresh.effort is None:
        return None
    effort = refresh.effort
    return {
        "mode": refresh.mode,
        "reason": refresh.reason,
        "rows": effort.rows,
        "stored": effort.stored,
        "expected": {"DIFFERENTIAL": effort.incremental, "FULL": effort.full},
        "seconds": round(effort.seconds, 3),
    }


def share(found: Mapping[float, Mapping[str, Compared]], which: str) -> float | None:
    """The part of the choices that were right, of those that there were."""
    every = [c.is_right(getattr(c, which)) for one in found.values() for c in one.values()]
    known = [right for right in every if right is not None]
    return round(sum(known) / len(known), 3) if known else None


def measure(given: Options) -> dict[str, Any]:
    """One run; all that it saw."""
    wanted, progress = wanted_queries(given), Progress()
    with opened(given, progress) as (hr, sql, _):
        began = time.perf_counter()
        found = compare(hr, sql, given, wanted, progress)
        problems = {}
        if "equality" not in given.skip:
            judged = {name: judge(hr, sql, name, query)[1] for name, query in wanted.items()}
            problems = {name: differs for name, differs in judged.items() if differs is not None}
        return {
            "scale": given.scale,
            "rounds": given.rounds,
            "machine": machine(given),
            "versions": versions(hr),
            "seconds": round(time.perf_counter() - began, 1),
            "changes": {
                str(change): {name: compared.document() for name, compared in one.items()}
                for change, one in found.items()
            },
            "first_right": share(found, "first"),
            "learnt_right": share(found, "learnt"),
            "problems": problems,
        }


def main() -> None:
    given = options(sys.argv[1:])
    # Whoever stops the run wants its servers and folders gone, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        result = measure(given)
    except KeyboardInterrupt:
        sys.exit(130)
    out = sys.stdout.write
    for change, one in result["changes"].items():
        for name, compared in one.items():
            took = " ".join(
                f"{way} {median(ms or [0]):6.0f} ms" for way, ms in compared["ms"].items()
            )
            chosen = " ".join(
                f"{which} {(compared[which] or {}).get('mode')} {compared[f'{which}_right']}"
                for which in ("first", "learnt")
            )
            out(f"{float(change):7.2%} {name:4} {took} | {chosen}\n")
    out(f"right: {result['first_right']} at first, {result['learnt_right']} once known\n")
    if given.out is not None:
        given.out.write_text(json.dumps(result, indent=1) + "\n")
    out(json.dumps(result) + "\n")
    sys.exit(1 if result["problems"] else 0)


if __name__ == "__main__":
    main()
