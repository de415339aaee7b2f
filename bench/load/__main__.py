"""`make bench-load RATES=100,1000 MODE=trigger`: stream tables under a sustained load of writes."""

from __future__ import annotations

import json
import signal
import sys

from bench.load.options import options
from bench.load.run import run


def main() -> None:
    given = options(sys.argv[1:])
    # Whoever stops the run wants its servers, writers and daemon gone, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        result = run(given)
    except KeyboardInterrupt:
        sys.exit(130)
    if given.out is not None:
        given.out.write_text(json.dumps(result, indent=1) + "\n")
    sys.stdout.write(json.dumps(result) + "\n")
    sys.exit(1 if result["failures"] else 0)


if __name__ == "__main__":
    main()
