"""The commands about databases, with a server and without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Headrace

pytestmark = pytest.mark.postgres


def test_claims_on_workers(dsn: str, tmp_path: Path, headrace: Headrace) -> None:
    home = ("--home", tmp_path, "--dsn", dsn)
    assert headrace("init", *home).code == 0

    def claim() -> list[object]:
        (known,) = headrace("databases", "--json", *home).document["databases"]
        return [known[name] for name in ("alias", "share", "quota", "priority")]

    assert claim() == ["home", 1, None, 0]
    given = ("--quota", "8", "--priority", "-2")
    assert headrace("alter-database", "home", *given, *home).code == 0
    assert claim() == ["home", 1, 8, -2]
    lines = [line.split() for line in headrace("databases", *home).out.splitlines()]
    assert lines[0][:5] == ["database", "sources", "share", "quota", "priority"]
    assert lines[-1][:5] == ["home", "0", "1", "8", "-2"]
    answer = headrace("alter-database", "home", "--no-quota", "--share", "3", "--json", *home)
    assert answer.document == {"altered": "home"}
    assert claim() == ["home", 3, None, -2]
    for wrong in ((), ("--quota", "1", "--no-quota"), ("--quota", "0"), ("--priority", "9999")):
        assert headrace("alter-database", "home", *wrong, *home).code == 2
    assert headrace("alter-database", "crm", "--quota", "1", *home).code == 2
