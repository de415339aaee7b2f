"""`make soak HOURS=2 MODE=wal SEED=7`: faults of every kind under load, from a seed."""

from __future__ import annotations

import json
import signal
import sys

from bench.soak.chart import chart
from bench.soak.options import options
from bench.soak.report import show
from bench.soak.run import run


def main() -> None:
    given = options(sys.argv[1:])
    # Whoever stops the soak wants its server, daemon and disk gone, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        result = run(given)
    except KeyboardInterrupt:
        sys.exit(130)
    show(result)
    if given.out is not None:
        given.out.write_text(json.dumps(result, indent=1) + "\n")
        given.out.with_suffix(".svg").write_text(chart(result))
    sys.stdout.write(json.dumps(result) + "\n")
    sys.exit(0 if result["ok"] else 1)


if __name__ == "__main__":
    main()
