"""`make bench-tpch`: whether 22 queries are kept right; with a scale, what refreshes cost."""

from __future__ import annotations

import json
import signal
import sys

from bench.tpch.check import check
from bench.tpch.measure import measure
from bench.tpch.options import options
from bench.tpch.report import show


def main() -> None:
    given = options(sys.argv[1:])
    # Whoever stops the run wants its servers and folders gone, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if all(argument.startswith("ONLY=") for argument in sys.argv[1:]):
        check(given.only)
        return
    try:
        result = measure(given)
    except KeyboardInterrupt:
        sys.exit(130)
    show(result)
    if given.out is not None:
        given.out.write_text(json.dumps(result, indent=1) + "\n")
    sys.stdout.write(json.dumps(result) + "\n")
    sys.exit(1 if result["failures"] else 0)


if __name__ == "__main__":
    main()
