"""Processes that die: `python -m tests.crash.nursery` forks one for each line it reads.

A line is a JSON object: `dsn`, `home`, `spark`, `action` (its name), and `kill`, which is
[when, kind] of the step at which the child kills itself, or null; a third part says at the
how-manieth of this kind. The answer is a line with `killed`, `failed` (what was raised), `seen`
(the kinds of steps performed) and `moments` (all that `kill` could be, in order).
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections import Counter
from typing import Any

# Imported here once, so that no child has to: a fork starts with what its parent has read.
import headrace.api
from headrace.engine.steps import Step
from tests.crash.life import LIFE
from tests.crash.transitions import TRANSITIONS

ACTIONS = {action.name: action.perform for action in (*LIFE, *TRANSITIONS)}


def run(order: dict[str, Any], report: int) -> None:
    """The child: perform the action, telling each step through the pipe as it is seen."""
    seen: Counter[tuple[str, str]] = Counter()

    def watch(when: str, step: Step) -> None:
        kind = type(step).__name__
        seen[when, kind] += 1
        moment = [when, kind, seen[when, kind]]
        os.write(report, (json.dumps(moment) + "\n").encode())
        if order["kill"] in (moment, [when, kind]):
            os.kill(os.getpid(), signal.SIGKILL)

    with headrace.connect(order["dsn"], home=order["home"], spark=order["spark"]) as hr:
        hr._engine.watch = watch
        ACTIONS[order["action"]](hr)
        if order.get("verify"):
            for status in hr.status():
                receipt = hr.verify(status.name, source=True)
                assert receipt.equal, receipt


def fork(order: dict[str, Any]) -> dict[str, Any]:
    """Run the order in a child and wait for its end."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            run(order, writing)
        except BaseException:  # noqa: BLE001  the test shows it
            os.write(writing, b"!" + traceback.format_exc().encode())
            os._exit(1)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as lines:
        reported, _, failed = lines.read().partition("!")
    moments = [json.loads(line) for line in reported.splitlines()]
    _, status = os.waitpid(child, 0)
    return {
        "killed": os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL,
        "failed": failed,
        "seen": sorted({kind for _, kind, _ in moments}),
        "moments": moments,
    }


def main() -> None:
    for line in sys.stdin:
        sys.stdout.write(json.dumps(fork(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
