"""The README's Python runs as it stands, in a folder of its own."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, read

BLOCKS = re.findall(r"^```python\n(.*?)^```$", read(ROOT / "README.md"), re.DOTALL | re.MULTILINE)


@pytest.mark.e2e
@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_the_example_runs(
    block: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    spark: object,
) -> None:
    """With nothing given: an embedded server in the folder, and the test run's one Spark."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("HEADRACE_")]:
        monkeypatch.delenv(name)
    exec(compile(block, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "DIFFERENTIAL" in printed
    assert "True" in printed
    assert "('ada', 2, Decimal('16.00'))" in printed
    assert [path.name for path in tmp_path.iterdir()] == [".headrace"]


def test_there_is_an_example() -> None:
    assert BLOCKS
