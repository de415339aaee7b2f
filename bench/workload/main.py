"""One run from options to its last line of JSON, in a project of its own."""

from __future__ import annotations

import json
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import psycopg

import headrace
from bench.workload.options import Options, options
from bench.workload.report import report, show
from bench.workload.run import Seen, Workload, run
from headrace.spark.launch import LOCAL
from headrace.spark.session import local_session


def main(make: Callable[[Options, Path], Workload]) -> None:
    """Run what `make` returns for the options of the command line, and exit."""
    given = options(sys.argv[1:])
    # Whoever stops the run wants its servers and folders gone, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="headrace-bench-", ignore_cleanup_errors=True) as place:
        workload = make(given, Path(place))
        seen: dict[str, Seen] = {}
        stopped = False
        session = local_session(LOCAL, memory=given.heap) if given.heap else None
        try:
            with (
                headrace.connect(home=Path(place) / "home", spark=session) as hr,
                psycopg.connect(hr.dsn, autocommit=True) as sql,
            ):
                run(hr, sql, workload, given.batches, seen)
        except KeyboardInterrupt:
            stopped = True
        finally:
            if session is not None:
                session.stop()
    result = report(workload, given, seen, stopped)
    show(result)
    if given.out is not None:
        given.out.write_text(json.dumps(result, indent=1) + "\n")
    sys.stdout.write(json.dumps(result) + "\n")
    sys.exit(130 if stopped else 1 if result["failed"] else 0)
