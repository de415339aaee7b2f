"""How refreshes grow with the tables: `python -m bench.tpch.growth small.json large.json`.

Both results have to be of as many changed orders. Of every query the ratio of its refreshes, and
their geometric mean; the last line is one JSON object.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from bench.tpch.figures import geometric_mean


def growth(small: dict[str, Any], large: dict[str, Any]) -> dict[str, Any]:
    """How many times as long refreshes took over the larger tables."""
    if small["orders_each_way"] != large["orders_each_way"]:
        raise SystemExit("the results are not of as many changed orders")
    times = {
        name: round(one["refresh_ms"] / small["queries"][name]["refresh_ms"], 2)
        for name, one in large["queries"].items()
        if "refresh_ms" in one and "refresh_ms" in small["queries"].get(name, {})
    }
    mean = geometric_mean(times.values())
    return {
        "scales": [small["scale"], large["scale"]],
        "orders_each_way": small["orders_each_way"],
        "queries": times,
        "mean": None if mean is None else round(mean, 2),
        "highest": max(times.values(), default=None),
    }


def main() -> None:
    if len(sys.argv) != 3:
        raise SystemExit("usage: python -m bench.tpch.growth small.json large.json")
    small, large = (json.loads(Path(name).read_text()) for name in sys.argv[1:])
    result = growth(small, large)
    for name, ratio in result["queries"].items():
        sys.stdout.write(f"{name:5} {ratio:6.2f}\n")
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
