"""The writers of a load, a process of its own: `python -m bench.load.writers`.

The first line of its input has its settings, each further line a rate to write at, both as JSON. A
line of output answers each rate. The process ends with its input.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import psycopg

from bench.load.lag import PERCENTILES, percentile
from bench.load.mix import Mixer, statement
from bench.load.options import Options
from bench.load.pacing import Pace, transaction_rows

# Seconds of a bucket of the ledger of what was written when.
BUCKET = 0.05
NAME = "load writer"


@dataclass
class Written:
    """What one writer has done at one rate."""

    commits: list[tuple[float, int]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    error: str | None = None


class Writer:
    """A connection that commits the transactions of one mixer."""

    def __init__(self, dsn: str, mixer: Mixer) -> None:
        self._sql = psycopg.connect(dsn, application_name=NAME)
        self._mixer = mixer

    def write(self, pace: Pace, began: float, seconds: float, done: Written) -> None:
        try:
            while (due := pace.next(time.monotonic() - began)) < seconds:
                time.sleep(max(0.0, began + due - time.monotonic()))
                started = time.monotonic()
                rows = self._commit(pace.size)
                ended = time.monotonic()
                done.commits.append((ended, rows))
                done.seconds.append(ended - started)
        except psycopg.Error as error:
            # What fails first in a pipeline makes all that follows fail, too.
            first: BaseException = error
            while first.__context__ is not None:
                first = first.__context__
            done.error = f"{type(first).__name__}: {first}"

    def _commit(self, size: int) -> int:
        """Commit one transaction in one round trip; the number of row changes."""
        cursors = []
        with self._sql.pipeline():
            for batch in self._mixer.transaction(size):
                cursors.append(self._sql.execute(*statement(batch)))
            self._sql.commit()
        return sum(cursor.rowcount for cursor in cursors)


def write(writers: list[Writer], rate: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Write at a rate; what was achieved, ready for JSON."""
    size, seconds = transaction_rows(rate, settings["transaction"]), settings["seconds"]
    share, began = rate / len(writers), time.monotonic()
    paces = [
        Pace(share, size, settings["backlog"], offset=number * size / rate)
        for number in range(len(writers))
    ]
    done = [Written() for _ in writers]
    threads = [
        threading.Thread(target=writer.write, args=(pace, began, seconds, one))
        for writer, pace, one in zip(writers, paces, done, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    commits = sorted(commit for one in done for commit in one.commits)
    took = [second for one in done for second in one.seconds]
    ended = max(began + seconds, commits[-1][0] if commits else began)
    return {
        "began": began,
        "ended": ended,
        "written": sum(rows for _, rows in commits),
        "transactions": len(commits),
        "transaction_rows": size,
        "skipped_transactions": sum(pace.skipped for pace in paces),
        "largest_backlog_s": round(max(pace.latest for pace in paces), 2),
        "commit_ms": {
            name: round(1000 * percentile(took, part), 1) if took else None
            for name, part in PERCENTILES.items()
        },
        "ledger": ledger(commits),
        "errors": [one.error for one in done if one.error is not None],
    }


def ledger(commits: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """Return running totals of row changes, one for each bucket of time that has a commit."""
    totals: dict[int, tuple[float, int]] = {}
    total = 0
    for at, rows in commits:
        total += rows
        totals[int(at / BUCKET)] = at, total
    return list(totals.values())


class WriterProcess:
    """The process of the writers, as the run sees it; use it in a `with`."""

    def __init__(self, dsn: str, options: Options) -> None:
        self._options = options
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.load.writers"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._send(
            {
                "dsn": dsn,
                "writers": options.writers,
                "orders": options.orders,
                "seed": options.seed,
            }
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def write(self, rate: int, seconds: float) -> dict[str, Any]:
        options = self._options
        self._send(
            {
                "rate": rate,
                "seconds": seconds,
                "transaction": options.transaction,
                "backlog": options.backlog,
            }
        )
        assert self._process.stdout is not None
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the writers ended with exit code {self._process.wait()}")
        found: dict[str, Any] = json.loads(answer)
        return found

    def _send(self, document: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(document) + "\n")
        self._process.stdin.flush()

    def __enter__(self) -> WriterProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.communicate()


def main() -> None:
    settings = json.loads(sys.stdin.readline())
    count = settings["writers"]
    writers = [
        Writer(settings["dsn"], Mixer(number, count, settings["orders"], settings["seed"]))
        for number in range(count)
    ]
    for line in sys.stdin:
        asked = json.loads(line)
        sys.stdout.write(json.dumps(write(writers, asked["rate"], asked)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
