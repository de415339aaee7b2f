"""SIGKILL before and after every kind of step: afterwards everything is exact.

The points are made from `STEPS`, so a new step is covered unasked: a kind that no action of
`LIFE` reaches fails its test. Each point is met by the first try, by the retry, and twice in a row.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import psycopg
import pytest
from psycopg import sql

from headrace.embedded import EmbeddedServer
from headrace.engine.steps import STEPS, Step
from tests.cluster import servers
from tests.crash.life import ANSWERS, CHANGE, LIFE, TABLES, Action

pytestmark = [pytest.mark.spark, pytest.mark.e2e]

ROOT = Path(__file__).parents[2]
POINTS = [(when, step.__name__) for step in STEPS for when in ("before", "after")]
# Something must lie beyond the pins for there to be anything to recover.
DIES_WRITING = ["after", "ComputeStage"]


@dataclass
class World:
    """A project before every action of its life, to be copied; and those who act in it."""

    server: EmbeddedServer
    folder: Path
    spark: str
    nursery: subprocess.Popen[str]
    reached: dict[str, list[str]] = field(default_factory=dict)
    numbers: int = 0

    def dsn(self, name: str) -> str:
        return self.server.dsn_of(name)

    def home(self, name: str) -> Path:
        return self.folder / name

    def copy(self, old: str, new: str) -> None:
        with psycopg.connect(self.server.dsn, autocommit=True) as connection:
            connection.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
                    sql.Identifier(new), sql.Identifier(old)
                )
            )
        shutil.copytree(self.home(old), self.home(new))

    def remove(self, name: str) -> None:
        with psycopg.connect(self.server.dsn, autocommit=True) as connection:
            connection.execute(
                sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
            )
        shutil.rmtree(self.home(name))

    def act(
        self, name: str, action: Action, kill: list[str] | None = None, *, verify: bool = False
    ) -> dict[str, Any]:
        """Let a process perform the action in a project, and perhaps die of it."""
        order = {
            "dsn": self.dsn(name),
            "home": str(self.home(name)),
            "spark": self.spark,
            "action": action.name,
            "kill": kill,
            "verify": verify,
        }
        with (
            psycopg.connect(self.dsn(name), autocommit=True) as application,
            action.during(application),
        ):
            _put(self.nursery.stdin, json.dumps(order))
            answer: dict[str, Any] = json.loads(_get(self.nursery.stdout))
        return answer

    def finish(self, name: str, action: Action, *, verify: bool = False) -> list[str]:
        """The action to its end; the kinds of steps that it took."""
        answer = self.act(name, action, verify=verify)
        assert not answer["failed"], answer["failed"]
        assert not answer["killed"]
        assert_exact(self.dsn(name), action.tables)
        seen: list[str] = answer["seen"]
        return seen


def _put(pipe: IO[str] | None, line: str) -> None:
    assert pipe is not None
    pipe.write(line + "\n")
    pipe.flush()


def _get(pipe: IO[str] | None) -> str:
    assert pipe is not None
    return pipe.readline()


def change(dsn: str, text: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in text.split(";"):
            if statement.strip():
                connection.execute(statement)  # type: ignore[call-overload]


def assert_exact(dsn: str, tables: tuple[str, ...]) -> None:
    """What is served is what PostgreSQL itself answers."""
    with psycopg.connect(dsn) as connection:
        for name in tables:
            served = connection.execute(
                sql.SQL("SELECT to_jsonb(t)::text FROM {} t ORDER BY 1").format(
                    sql.Identifier(name)
                )
            ).fetchall()
            query = sql.SQL("SELECT to_jsonb(t)::text FROM ({}) t ORDER BY 1").format(
                sql.SQL(ANSWERS[name])  # type: ignore[arg-type]
            )
            assert served == connection.execute(query).fetchall(), name


@pytest.fixture(scope="module")
def world(server: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The whole life once, kept before each action, with the steps that each one takes."""
    folder = tmp_path_factory.mktemp("crash")
    with ExitStack() as stack:
        address = stack.enter_context(servers.connect(folder / "spark"))
        nursery = stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-m", "tests.crash.nursery"],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        made = World(server, folder, address, nursery)
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute("CREATE DATABASE crash_life")
        made.home("crash_life").mkdir()
        change(made.dsn("crash_life"), TABLES)
        for number, action in enumerate(LIFE):
            change(made.dsn("crash_life"), action.before)
            made.copy("crash_life", f"crash_before_{number}")
            for kind in made.finish("crash_life", action):
                made.reached.setdefault(kind, []).append(action.name)
        yield made
        nursery.stdin.close()  # type: ignore[union-attr]


def number_of(action: Action) -> int:
    return LIFE.index(action)


@pytest.mark.parametrize(("when", "kind"), POINTS)
def test_a_kill_around_a_step_is_made_good(world: World, when: str, kind: str) -> None:
    point = [when, kind]
    name = f"crash_{when}_{kind.lower()}"
    in_recovery = kind not in world.reached
    chosen = world.reached["ComputeStage" if in_recovery else kind][-1]
    action = next(action for action in LIFE if action.name == chosen)
    world.copy(f"crash_before_{number_of(action)}", name)
    try:
        if in_recovery:
            assert world.act(name, action, DIES_WRITING)["killed"]
        assert world.act(name, action, point)["killed"], f"{kind} is reached by no action"
        # The retry, which has to recover first, may find nothing left to do.
        world.act(name, action, point)
        world.finish(name, action)
        if action.tables:
            change(world.dsn(name), CHANGE)
            for table in action.tables:
                assert table in ANSWERS
            refreshing = next(one for one in LIFE if one.name == "refresh")
            if action.tables == refreshing.tables:
                world.act(name, refreshing, point)
                world.finish(name, refreshing, verify=True)
        else:
            assert_nothing_left(world, name, action)
    finally:
        world.remove(name)


def assert_nothing_left(world: World, name: str, action: Action) -> None:
    """After the drop: no trigger, buffer or log of ours."""
    if action.name not in ("drop", "uninstall"):
        return
    with psycopg.connect(world.dsn(name)) as connection:
        left = connection.execute(
            "SELECT tgname FROM pg_trigger WHERE tgname LIKE 'headrace%' UNION ALL"
            " SELECT relname FROM pg_class WHERE relname LIKE 'buffer\\_%'"
        ).fetchall()
    assert left == []
    store = world.home(name) / "store"
    assert not store.exists() or [log for log in store.iterdir() if log.is_dir()] == []


def test_every_kind_of_step_is_listed() -> None:
    assert set(STEPS) == set(Step.__subclasses__())
