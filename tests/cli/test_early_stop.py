"""SIGTERM that comes while `headrace up` is still being loaded."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.cli.early_stop import WITH_VALUE, command_of
from headrace.cli.options import SHARED

# Sends the signal to itself when a module is about to be imported.
DRIVER = """
import os, runpy, signal, sys

class Sender:
    def find_spec(self, name, path=None, target=None):
        if name == MODULE and not sent:
            sent.append(name)
            os.kill(os.getpid(), NUMBER)

_, MODULE, NUMBER, *rest = sys.argv
NUMBER, sent = int(NUMBER), []
# A test run in the background hands an ignored interrupt down to its children.
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Sender())
sys.argv = ["headrace", *rest]
runpy.run_module("headrace", run_name="__main__", alter_sys=True)
"""


def ended(module: str, number: signal.Signals, *command: str) -> subprocess.CompletedProcess[str]:
    arguments = [sys.executable, "-c", DRIVER, module, str(int(number)), *command]
    return subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize("module", ["headrace.cli.main", "typer", "headrace.api", "pyarrow"])
def test_it_is_a_clean_stop(tmp_path: Path, module: str) -> None:
    home = str(tmp_path / "home")
    for command in (["up", "--home", home], ["--home", home, "up"]):
        done = ended(module, signal.SIGTERM, *command)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_other_commands_are_ended_by_it(tmp_path: Path) -> None:
    done = ended("typer", signal.SIGTERM, "history", "up", "--home", str(tmp_path))
    assert done.returncode == -signal.SIGTERM


def test_an_interrupt_while_it_opens_is_as_before(tmp_path: Path) -> None:
    done = ended("headrace.api", signal.SIGINT, "up", "--home", str(tmp_path / "home"))
    assert done.returncode == 130
    assert "stopped" in done.stderr


def test_the_command_of_a_command_line() -> None:
    assert command_of(["--json", "--home", "up", "--dsn=x", "status", "up"]) == "status"
    assert command_of(["--store", "s", "up", "--wait", "3"]) == "up"
    assert command_of(["--version"]) is None and command_of(["--home"]) is None
    shared = {"--" + name.replace("_", "-") for name, _, _ in SHARED}
    assert shared - {"--json"} == WITH_VALUE
