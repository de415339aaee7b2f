"""A command line that is run in this process, with its output caught."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headrace.cli.main import main
from tests.cli.examples import MemoryProject


@dataclass(frozen=True)
class Result:
    """What a command line gave."""

    code: int
    out: str
    error: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


Headrace = Callable[..., Result]


@pytest.fixture
def headrace(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Headrace:
    """Run `headrace …` and give its exit code, stdout and stderr."""
    for name in ("HEADRACE_HOME", "HEADRACE_DSN", "COLUMNS", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str | Path) -> Result:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        caught = capsys.readouterr()
        return Result(code, caught.out, caught.err)

    return run


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, headrace: Headrace) -> MemoryProject:
    """A project in memory that every command of the test opens."""
    (tmp_path / "pg").mkdir()
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path))
    made = MemoryProject()
    monkeypatch.setattr("headrace.api.connect", made.connect())
    return made
