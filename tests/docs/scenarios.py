"""Scenarios listed in tests/README.md."""

from __future__ import annotations

import re

from tests.docs.named_tests import TESTS

ROW = re.compile(
    r"^\| (?P<letter>[SGHPFX])(?P<number>\d+) \| (?P<shown>[^|]+) \| (?P<tests>[^|]+) \|$",
    re.MULTILINE,
)
SCENARIOS = tuple(ROW.finditer((TESTS / "README.md").read_text(encoding="utf-8")))
