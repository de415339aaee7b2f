"""SIGKILL at every moment of every transition between triggers and log: exact afterwards.

Each moment is met by the first try and by the retry. No Spark: what is compared are the sources.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

import headrace
from headrace.embedded import EmbeddedServer
from headrace.lifecycle.planned_table import TableRequest
from tests.crash.transitions import (
    CHANGE,
    GO,
    QUERY,
    STARTS,
    TABLES,
    TRANSITIONS,
    Transition,
    modes,
    take_cut,
)
from tests.forms import some
from tests.ingest.world import World
from tests.lifecycle.made import put_tables

pytestmark = pytest.mark.postgres

ROOT = Path(__file__).parents[2]
CALM = "transition_calm"
# What is left of ours in a database; slots are of the whole server.
LEFT = """
SELECT 'slot ' || slot_name FROM pg_replication_slots WHERE database = current_database()
UNION ALL SELECT 'publication ' || pubname FROM pg_publication
UNION ALL SELECT 'trigger ' || tgname FROM pg_trigger WHERE tgname LIKE 'headrace_capture%'
"""


@dataclass
class Lives:
    """Copies of a project that is captured by triggers, and those who die in them."""

    server: EmbeddedServer
    folder: Path
    nursery: subprocess.Popen[str]

    def dsn(self, name: str) -> str:
        return self.server.dsn_of(name)

    @contextmanager
    def begun(self, name: str, transition: Transition) -> Iterator[None]:
        """A project where the transition begins, for the time of a `with`."""
        with psycopg.connect(self.server.dsn, autocommit=True) as connection:
            query = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
            connection.execute(query.format(sql.Identifier(name), sql.Identifier(CALM)))
        shutil.copytree(self.folder / CALM, self.folder / name)
        try:
            kill = STARTS[transition.start]
            if kill is not None:
                answer = self.act(name, GO, kill)
                assert answer["killed"] is bool(kill), answer
            run(self.dsn(name), transition.before)
            yield
        finally:
            self.remove(name)

    def act(self, name: str, transition: Transition, kill: list[Any]) -> dict[str, Any]:
        order = {
            "dsn": self.dsn(name),
            "home": str(self.folder / name),
            "spark": None,
            "action": transition.name,
            "kill": kill,
        }
        assert self.nursery.stdin is not None and self.nursery.stdout is not None
        self.nursery.stdin.write(json.dumps(order) + "\n")
        self.nursery.stdin.flush()
        answer: dict[str, Any] = json.loads(self.nursery.stdout.readline())
        return answer

    def finish(self, name: str, transition: Transition) -> list[list[Any]]:
        """The transition to its end; the moments that it had."""
        answer = self.act(name, transition, [])
        assert not answer["failed"], answer["failed"]
        assert not answer["killed"]
        self.assert_exact(name, transition)
        moments: list[list[Any]] = answer["moments"]
        return moments

    def assert_exact(self, name: str, transition: Transition) -> None:
        """After the next change, sources are what their tables are: nothing was lost or doubled."""
        dsn = self.dsn(name)
        with psycopg.connect(dsn, autocommit=True) as application:
            if transition.ends is None:
                assert application.execute(LEFT).fetchall() == []
                schema = "SELECT to_regnamespace('headrace_capture')"
                assert application.execute(schema).fetchone() == (None,)
                return
            with headrace.connect(dsn, home=self.folder / name) as project:
                world = World(project, dsn, application, "")
                run(dsn, CHANGE)
                take_cut(project)
                assert_same(world)
                assert modes(project) == {transition.ends}
                following = project._engine.catalog.state().database(1).following
                left = {thing for (thing,) in application.execute(LEFT)}
        slot_and_publication = {one for one in left if not one.startswith("trigger")}
        if following is None:
            assert slot_and_publication == set()
        else:
            assert slot_and_publication == {f"slot {following.slot}", "publication headrace"}
        by_triggers = transition.ends.name == "TRIGGER"
        assert (following is None) is by_triggers
        assert (left != slot_and_publication) is by_triggers, "triggers are there, or they are not"

    def remove(self, name: str) -> None:
        with psycopg.connect(self.server.dsn, autocommit=True) as connection:
            query = sql.SQL("DROP DATABASE {} WITH (FORCE)")
            connection.execute(query.format(sql.Identifier(name)))
        shutil.rmtree(self.folder / name)


def assert_same(world: World) -> None:
    for source in world.sources.values():
        assert world.stored(source) == world.live(source), source.name


def run(dsn: str, text: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in text.split(";"):
            connection.execute(statement)  # type: ignore[call-overload]


@pytest.fixture(scope="module")
def lives(server: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lives]:
    folder = tmp_path_factory.mktemp("transitions")
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {CALM}")
    run(server.dsn_of(CALM), TABLES)
    (folder / CALM).mkdir()
    with headrace.connect(server.dsn_of(CALM), home=folder / CALM) as project:
        project.set("cdc_mode", "trigger")
        put_tables(project, TableRequest("owned", QUERY))
        take_cut(project)
    command = [sys.executable, "-m", "tests.crash.nursery"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, text=True, **pipes) as nursery:
        yield Lives(server, folder, nursery)
        nursery.stdin.close()  # type: ignore[union-attr]


def apart(moments: list[list[Any]]) -> list[list[Any]]:
    """Between the end of a step and the beginning of the next one nothing durable happens."""
    following = zip(moments, [["before"], *moments], strict=False)
    return [one for one, last in following if one[0] == "after" or last[0] == "before"]


@pytest.mark.parametrize("transition", TRANSITIONS, ids=lambda one: one.name)
def test_a_kill_at_any_moment_is_made_good(lives: Lives, transition: Transition) -> None:
    with lives.begun("transition_seen", transition):
        moments = lives.finish("transition_seen", transition)
    assert set(transition.steps) <= {kind for _, kind, _ in moments}
    failed = []
    for number, moment in enumerate(some(apart(moments), 3)):
        name = f"transition_{number}"
        with lives.begun(name, transition):
            assert lives.act(name, transition, moment)["killed"], moment
            # Whoever writes while nobody is there is captured, too: by one of the two.
            run(lives.dsn(name), CHANGE)
            # The retry, which has to recover first, may find nothing left to do.
            lives.act(name, transition, moment[:2])
            run(lives.dsn(name), CHANGE)
            try:
                lives.finish(name, transition)
            except AssertionError as error:
                failed.append((moment, str(error)))
    assert not failed, "\n".join(map(str, failed))
