"""The pages about the command line, the errors and the settings say what the code does."""

from __future__ import annotations

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
import typer.main

from headrace.cli.exit_codes import EXITS
from headrace.cli.main import COMMANDS, application
from headrace.cli.options import SHARED
from headrace.statements.options import OPTIONS

DOCS = Path(__file__).parents[2] / "docs"
SHARED_NAMES = {name for name, _, _ in SHARED}


def generator() -> ModuleType:
    spec = spec_from_file_location("generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["errors.md", "settings.md"])
def test_generated_pages_are_up_to_date(name: str) -> None:
    wanted = dict(generator().PAGES)[name]()
    assert (DOCS / name).read_text(encoding="utf-8") == wanted, "run `make docs`"


def sections() -> dict[str, str]:
    text = (DOCS / "cli.md").read_text(encoding="utf-8")
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_every_exit_code_is_documented() -> None:
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", sections()["Exit codes"], flags=re.MULTILINE)
    assert rows == [(str(number), meaning) for number, meaning in EXITS]


def test_every_option_of_a_stream_table_is_documented() -> None:
    section = sections()["Options of a stream table"]
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| (.+) \|$", section, flags=re.MULTILINE)
    assert rows == [(option.name, option.values, option.meaning) for option in OPTIONS]


def test_every_command_has_its_part() -> None:
    documented = [title for title in sections() if title.startswith("headrace ")]
    assert documented == [f"headrace {name}" for name, _ in COMMANDS]


@pytest.mark.parametrize("name", [name for name, _ in COMMANDS])
def test_every_option_is_documented_and_every_documented_option_exists(name: str) -> None:
    group = typer.main.get_command(application())
    command = group.commands[name]  # type: ignore[attr-defined]
    own = [option for option in command.params if option.name not in SHARED_NAMES]
    names = {text for option in own for text in option.opts if text.startswith("-")} - {"--help"}
    section = sections()[f"headrace {name}"]
    mentioned = set(re.findall(r"(?<![\w-])(--?[a-z][a-z-]*)", section))
    shared = {"--" + shared_name.replace("_", "-") for shared_name in SHARED_NAMES}
    assert names <= mentioned
    assert mentioned - shared <= names


def test_shared_options_are_documented() -> None:
    section = sections()["Options of every command"]
    mentioned = set(re.findall(r"^\| `(--[a-z-]+)", section, flags=re.MULTILINE))
    assert mentioned == {"--" + name.replace("_", "-") for name in SHARED_NAMES}
