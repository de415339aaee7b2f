"""The statements of the page about schedules are ones, and its numbers those of the code."""

from __future__ import annotations

import re

from headrace.schedule.schedule import parse_schedule
from headrace.schedule.tiers import FROZEN_AFTER, HOT_ABOVE, WARM_FROM, WATCHED, Tier
from headrace.statements.parse import parse
from tests.docs.pages import DOCS, read

PAGE = read(DOCS / "schedules.md")


def test_the_statements_parse_and_have_schedules() -> None:
    (statements,) = re.findall(r"^```sql\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    schedules = [str(one.options["schedule"]) for one in parse(statements)]
    assert [str(parse_schedule(one, "UTC")) for one in schedules] == schedules
    assert len(schedules) == 2


def test_the_table_of_tiers() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", PAGE.partition("## Tiers")[2], re.MULTILINE)
    assert rows == [
        (Tier.HOT, f"more than {HOT_ABOVE}"),
        (Tier.WARM, f"{WARM_FROM} to {HOT_ABOVE}"),
        (Tier.COLD, f"fewer than {WARM_FROM}"),
        (Tier.FROZEN, "none for an hour"),
    ]
    assert (FROZEN_AFTER.total_seconds(), WATCHED.total_seconds()) == (3600, 5 * 60)
    assert "over\nfive minutes" in PAGE
