"""Java is found where Spark looks for it, and refused when Spark could not run on it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headrace.errors import Unavailable
from headrace.spark.jvm import find_java, parse_major, require_java


@pytest.mark.parametrize(
    ("text", "major"),
    [
        ('java version "1.8.0_392"\nJava(TM) SE Runtime Environment', 8),
        ('openjdk version "11.0.2" 2019-01-15', 11),
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment (build 17.0.15+6)', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "17.0.1" 2021-10-19', 17),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", None),
        ("", None),
    ],
)
def test_versions_are_read(text: str, major: int | None) -> None:
    assert parse_major(text) == major


def make_java(folder: Path, version: str, exit_code: int = 0) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\nexit {exit_code}\n")
    program.chmod(0o755)
    return program


def path_of(*folders: Path) -> str:
    return os.pathsep.join([*(str(folder / "bin") for folder in folders), "/bin", "/usr/bin"])


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    home = make_java(tmp_path / "home", "21.0.1")
    on_path = make_java(tmp_path / "path", "17.0.1")
    environment = {"PATH": path_of(tmp_path / "path")}
    assert require_java(environment).path == on_path
    found = require_java({**environment, "JAVA_HOME": str(tmp_path / "home")})
    assert (found.path, found.major) == (home, 21)


def test_no_java(tmp_path: Path) -> None:
    with pytest.raises(Unavailable) as caught:
        require_java({"PATH": str(tmp_path)})
    assert caught.value.code == "java-missing"
    assert "openjdk-17-jre-headless" in str(caught.value.hint)


def test_a_wrong_java_home_is_named(tmp_path: Path) -> None:
    assert find_java({"JAVA_HOME": str(tmp_path)}) is None
    with pytest.raises(Unavailable) as caught:
        require_java({"JAVA_HOME": str(tmp_path)})
    assert caught.value.code == "java-missing"
    assert str(tmp_path) in str(caught.value.detail)


def test_java_is_too_old(tmp_path: Path) -> None:
    make_java(tmp_path, "11.0.2")
    with pytest.raises(Unavailable) as caught:
        require_java({"JAVA_HOME": str(tmp_path)})
    assert caught.value.code == "java-missing"
    assert caught.value.message == "Java 11 is too old"


def test_a_program_that_is_not_java(tmp_path: Path) -> None:
    make_java(tmp_path, "none", exit_code=1)
    with pytest.raises(Unavailable) as caught:
        require_java({"JAVA_HOME": str(tmp_path)})
    assert caught.value.code == "java-missing"
    assert "not a working Java" in caught.value.message


def test_the_java_of_this_machine() -> None:
    assert require_java().major >= 17
