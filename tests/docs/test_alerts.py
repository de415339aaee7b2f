"""docs/alerts.md lists every alert there is, and shows one as it is sent."""

from __future__ import annotations

import json
import re

from headrace.catalog.alert import EVENTS, KINDS, Alert
from headrace.catalog.status_alerts import MESSAGES
from tests.alerts import FIELDS
from tests.docs.pages import DOCS, read

PAGE = read(DOCS / "alerts.md")
ROW = re.compile(
    r"^\| (?P<about>\w+) \| `(?P<code>[\w-]+)` \| (?P<levels>[\w, ]+) \|", re.MULTILINE
)


def test_every_alert_has_a_row() -> None:
    rows = [(one["about"], one["code"]) for one in ROW.finditer(PAGE)]
    assert sorted(rows) == sorted(KINDS)


def test_what_is_not_cleared_is_listed_apart() -> None:
    _, _, apart = PAGE.partition("## What happened")
    assert {(one["about"], one["code"]) for one in ROW.finditer(apart)} == EVENTS


def test_the_fields_are_explained() -> None:
    assert re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE) == FIELDS


def test_the_example_is_one() -> None:
    (example,) = re.findall(r"^\{.*\}$", PAGE, re.MULTILINE)
    said = json.loads(example)
    raised, _ = MESSAGES["table", "suspended"]
    sent = Alert("table", said["name"], "critical", "suspended", raised)
    assert sent.payload() == example
