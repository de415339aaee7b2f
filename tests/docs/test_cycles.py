"""The statements of the page about cycles that are refused, with the text that it shows.

Those that are not are the ones of tests/e2e/test_cycles.py.
"""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

import headrace
from tests.docs.cycles_page import REFUSED, SQL


@pytest.mark.postgres
def test_refused_statements(dsn: str, tmp_path: Path) -> None:
    with (
        psycopg.connect(dsn, autocommit=True) as sql,
        headrace.connect(dsn=dsn, home=tmp_path) as hr,
    ):
        sql.execute(SQL[0])
        hr.set("allow_circular", True)
        for statements, shown in REFUSED:
            with pytest.raises(headrace.UserError) as caught:
                hr.run(statements)
            assert str(caught.value) + "\n" == shown
            assert hr.status() == ()


def test_every_example_is_run() -> None:
    assert (len(SQL), len(REFUSED)) == (5, 3)
