"""Run tasks as soon as those that they wait for are done, several at the same time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from headrace.spark.jobs import helping

Name = TypeVar("Name")
Result = TypeVar("Result")
Task = Callable[[], Result]


def run_parallel(
    waits_for: Mapping[Name, Set[Name]],
    begin: Callable[[Name], Task[Result] | None],
    end: Callable[[Name, Result], None],
    most: int,
    cancel: Callable[[], None],
) -> None:
    """Run the tasks of all names, each after those it waits for, at most `most` at once.

    `begin` gives the task of a name, or None where there is nothing to do, and `end` takes its
    result; both are called by this thread, one at a time. A task that nothing can run beside is
    performed by this thread, too. When one fails, or this thread is interrupted, those under way
    are cancelled and waited for, and none is begun any more.
    """
    waiting = {name: set(others) & waits_for.keys() for name, others in waits_for.items()}
    running: dict[Future[Result], Name] = {}
    ready: dict[Name, Task[Result]] = {}

    def done(name: Name) -> None:
        for others in waiting.values():
            others.discard(name)

    def find_ready() -> None:
        """Begin all names that wait for nothing; a name without a task is done at once."""
        while free := [name for name, others in waiting.items() if not others]:
            for name in free:
                del waiting[name]
                task = begin(name)
                if task is None:
                    done(name)
                else:
                    ready[name] = task

    with ThreadPoolExecutor(most, "headrace-member") as pool:
        try:
            while True:
                find_ready()
                if not ready and not running:
                    return
                if len(ready) == 1 and not running:
                    name, task = ready.popitem()
                    end(name, task())
                    done(name)
                    continue
                for name in list(ready)[: most - len(running)]:
                    running[pool.submit(helping(ready.pop(name)))] = name
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    name = running.pop(future)
                    end(name, future.result())
                    done(name)
        except BaseException:
            while running:
                cancel()
                ended = wait(running, timeout=0.2, return_when=FIRST_COMPLETED).done
                for future in ended:
                    del running[future]
            raise
