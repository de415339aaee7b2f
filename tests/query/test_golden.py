"""Queries and their plans, as text."""

from __future__ import annotations

import pytest

from tests.query.golden import Golden, explained, goldens


@pytest.mark.parametrize("golden", goldens(), ids=lambda golden: golden.id)
def test_plan(golden: Golden) -> None:
    assert explained(golden.query) == golden.expected


@pytest.mark.parametrize("golden", goldens(), ids=lambda golden: golden.id)
def test_same_text_same_plan(golden: Golden) -> None:
    assert explained(golden.query) == explained(golden.query)
