from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from headrace.cli.call import GlobalOptions
from headrace.cli.commands.project import write_project_file
from headrace.errors import UserError
from headrace.settings import places

DSN = 'postgresql://me@host/größe?application_name="x"'


def test_what_was_given_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADRACE_DSN", raising=False)
    given = GlobalOptions(home=tmp_path, dsn=DSN, store="s3://bucket/'a' \\ b")
    file = write_project_file(tmp_path, given)
    assert file is not None
    assert tomllib.loads(file.read_text()) == {"dsn": DSN, "store": given.store}
    found = places(home=tmp_path)
    assert found.dsn is not None
    assert (found.dsn.get_secret_value(), found.store) == (DSN, given.store)
    written = file.read_bytes()
    assert (
        write_project_file(tmp_path, given) == write_project_file(tmp_path, GlobalOptions()) == file
    )
    assert file.read_bytes() == written


def test_nothing_given_writes_nothing(tmp_path: Path) -> None:
    assert write_project_file(tmp_path, GlobalOptions(home=tmp_path)) is None
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_says_otherwise_is_kept(tmp_path: Path) -> None:
    write_project_file(tmp_path, GlobalOptions(dsn=DSN))
    with pytest.raises(UserError, match="has another value for dsn"):
        write_project_file(tmp_path, GlobalOptions(dsn="postgresql://other/"))
    (tmp_path / "headrace.toml").write_text("dsn = ")
    with pytest.raises(UserError, match="could not read"):
        write_project_file(tmp_path, GlobalOptions(dsn=DSN))


@pytest.mark.parametrize("dsn", ["postgresql://me:secret@host/db", "host=a password=secret"])
def test_passwords_are_not_written(dsn: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        write_project_file(tmp_path, GlobalOptions(dsn=dsn))
    assert "secret" not in str(caught.value)
    assert "env:NAME" in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    assert write_project_file(tmp_path, GlobalOptions(dsn="env:DATABASE")) is not None
