"""The package as others see it: its version, its names, its types."""

from __future__ import annotations

import tomllib
from pathlib import Path

import headrace

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())


def test_the_version_is_the_project_s() -> None:
    assert headrace.__version__ == PROJECT["project"]["version"]


def test_names_that_are_loaded_late_are_listed() -> None:
    assert {"connect", "Headrace", "__version__"} <= set(dir(headrace))
    assert set(headrace.__all__) <= set(dir(headrace))
    for name in headrace.__all__:
        assert getattr(headrace, name) is not None


def test_the_package_says_that_it_is_typed() -> None:
    assert Path(headrace.__file__).with_name("py.typed").is_file()
    assert "py.typed" in PROJECT["tool"]["setuptools"]["package-data"]["headrace"]
