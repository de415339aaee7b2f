"""One soak from its beginning to its end."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from typing import Any

import psycopg

from bench.soak.check import check, refreshes
from bench.soak.faults import ENDING, FAULTS, switch_to_wal
from bench.soak.locks import LockWatch
from bench.soak.options import Options
from bench.soak.outcome import Occurrence, Seen, outcome
from bench.soak.plan import CHECKPOINT, SWITCH, Event, calm_from, plan
from bench.soak.processes import name_of
from bench.soak.samples import Sampler
from bench.soak.shop import STREAM_TABLES
from bench.soak.site import Site
from bench.soak.writers import Reader, Writer

# Tables whose sources change all the time: they tell whether everything goes on after a fault.
PULSE = ("balances", "order_lines")


def say(words: str) -> None:
    sys.stderr.write(f"{datetime.now(UTC):%H:%M:%S} {words}\n")
    sys.stderr.flush()


def run(options: Options) -> dict[str, Any]:
    """Run a soak; its result, ready for JSON."""
    seconds = options.seconds
    with Site(options) as site:
        kinds = [name for name in options.kinds(FAULTS) if site.small_disk or name != "full_disk"]
        events = plan(
            options.seed, seconds, options.gap, kinds, ENDING, switch=options.mode == "both"
        )
        say(f"setting up {len(STREAM_TABLES)} stream tables in {site.folder}")
        site.set_up()
        say(f"{len(events)} events in {seconds:.0f} s, set up in {site.clock():.0f} s")
        site.began = time.monotonic()
        soak = Soak(site, seconds)
        soak.go(events)
        return {
            "faults_left_out": sorted(set(FAULTS) - set(kinds)),
            **outcome(options, soak.seen, calm_from(seconds)),
        }


class Soak:
    """The load, the faults and the observers of one soak."""

    def __init__(self, site: Site, seconds: float) -> None:
        self.seen = Seen()
        self._site = site
        self._seconds = seconds
        self._writers = [Writer(site, number) for number in range(site.options.writers)]
        self._reader = Reader(site)
        self._locks = LockWatch(site)
        # Enough samples for a picture, not too many for a file.
        self._sampler = Sampler(site, min(10.0, max(1.0, seconds / 400)))

    def go(self, events: tuple[Event, ...]) -> None:
        """Let all events happen at their times, check at the end, and stop everything."""
        threads = (*self._writers, self._reader, self._locks, self._sampler)
        for thread in threads:
            thread.start()
        try:
            for number, event in enumerate(events):
                self._until(event.at)
                later = events[number + 1 :]
                self._happen(event, later[0].at if later else self._seconds)
            self._until(self._seconds)
            self._check()
        finally:
            for thread in threads:
                thread.stop()
            for thread in threads:
                thread.join()
        self._observe()

    def _until(self, at: float) -> None:
        while (left := at - self._site.clock()) > 0:
            time.sleep(min(left, 1.0))

    def _happen(self, event: Event, follower: float) -> None:
        began = self._site.clock()
        say(f"{began:.0f} s: {event.kind}")
        if event.kind == CHECKPOINT:
            self._check()
            return
        try:
            act = switch_to_wal if event.kind == SWITCH else FAULTS[event.kind]
            done = act(self._site, event)
        except Exception as error:  # noqa: BLE001  the result shows it
            self.seen.failed.append(
                f"{event.kind} at {began:.0f} s: {type(error).__name__}: {error}"
            )
            say(self.seen.failed[-1])
            return
        took = round(self._site.clock() - began, 1)
        occurrence = Occurrence(round(began, 1), event.kind, done.what, took, done.operator)
        self.seen.events.append(occurrence)
        occurrence.recovered = self._recovered(follower)
        answer = "" if done.operator is None else f"; {done.operator}"
        say(f"  {done.what}{answer}; recovered after {occurrence.recovered} s")

    def _recovered(self, follower: float) -> float | None:
        """Wait until the tables of the pulse show a moment after now, or the next event comes."""
        began, moment = self._site.clock(), datetime.now(UTC)
        query = "SELECT min(as_of) > %s FROM headrace.status WHERE name = ANY (%s)"
        names = [f"public.{name}" for name in PULSE]
        while self._site.clock() < follower:
            try:
                with self._site.connect() as connection:
                    if connection.execute(query, (moment, names)).fetchone() == (True,):
                        return round(self._site.clock() - began, 1)
            except psycopg.Error:
                pass
            time.sleep(0.2)
        return None

    def _check(self) -> None:
        """Pause the writers, compare everything, and go on."""
        for writer in self._writers:
            writer.pause()
        self.seen.failed += [
            f"{writer.name} did not come to an end" for writer in self._writers if not writer.idle()
        ]
        found = check(self._site)
        self.seen.checks.append(found)
        say(f"checked: settled in {found.settled} s, {found.differences or 'no difference'}")
        for writer in self._writers:
            writer.go_on()

    def _observe(self) -> None:
        """Collect what the observers have noted, and stop the daemon."""
        seen, site, daemon = self.seen, self._site, self._site.daemon
        assert daemon is not None
        seen.samples = (*self._sampler.samples, self._sampler.sample())
        seen.refreshes = refreshes(site)
        daemon.close()
        seen.starts, seen.exits = daemon.starts, tuple(daemon.exits)
        seen.log_end = daemon.log_end()
        seen.left_behind = _still_there(daemon.jvms)
        workers = (*self._writers, self._reader)
        seen.windows = tuple(site.windows)
        seen.statements = sum(one.statements for one in workers)
        seen.slow = {one.session_name: one.slow for one in workers}
        seen.slowest = max(one.slowest for one in workers)
        seen.failures = tuple(failure for one in workers for failure in one.failures)
        seen.waits, seen.waits_for_others = self._locks.waits, self._locks.others
        seen.snapshots = self._reader.snapshots
        seen.wrong_snapshots = tuple(self._reader.wrong)


def _still_there(jvms: set[int]) -> tuple[int, ...]:
    """Return the JVMs of daemons that have ended and still run some seconds later."""
    for _ in range(100):
        if not any(name_of(pid) == "java" for pid in jvms):
            break
        time.sleep(0.1)
    return tuple(pid for pid in jvms if name_of(pid) == "java")
