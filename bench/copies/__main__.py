"""`make bench-copy ROWS=1000000`: a first copy of a source beside COPY and Spark's JDBC reader."""

from __future__ import annotations

import json
import signal
import sys

from bench.copies.options import options
from bench.copies.run import run


def main() -> None:
    given = options(sys.argv[1:])
    # Whoever stops the run wants its server gone, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        result = run(given)
    except KeyboardInterrupt:
        sys.exit(130)
    if given.out is not None:
        given.out.write_text(json.dumps(result, indent=1) + "\n")
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
