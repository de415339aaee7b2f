"""Commands travel as JSON, and mean the same on arrival."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.catalog.codec import to_json
from headrace.catalog.records import RefreshMode
from headrace.commands.command import Answer, Command
from headrace.commands.commands import (
    COMMANDS,
    NOTHING,
    PLAN,
    RECEIPT,
    REFRESH,
    STATEMENTS,
    TABLE,
    TABLES,
    Alter,
    Apply,
    ConvertBuffers,
    Create,
    CreateOrReplace,
    Drop,
    RefreshTable,
    Reinit,
    Repair,
    Resume,
    Run,
    Suspend,
    Verify,
    decode_command,
    encode_command,
)
from headrace.commands.database_commands import AlterDatabase, Attach, Detach
from headrace.commands.run import Done
from headrace.errors import UserError
from headrace.lifecycle.alter import KEEP, Alteration
from headrace.lifecycle.planned_table import TableRequest
from headrace.project.plan import Act, ProjectPlan, TableChange
from headrace.project.read import DefinedTable
from tests.catalog import examples

PATH = ("public", "Sales")

REQUEST = TableRequest("totals", "SELECT 1 AS a", "30s", RefreshMode.FULL, {"tier": "warm"})

WANTED = DefinedTable(("public", "totals"), REQUEST, "shop/totals.sql", 3)
CHANGE = TableChange(
    Act.REBUILD, ("public", "totals"), "its query differs", {"tier": None}, ("public.other",), "x"
)
PROJECT_PLAN = ProjectPlan("shop", True, "12ab", "34cd", (CHANGE,))

EXAMPLES: tuple[Command[Any], ...] = (
    Create((REQUEST, TableRequest('"Sales".x', "SELECT 'ß' AS a"))),
    CreateOrReplace(REQUEST),
    Alter("public", "totals", Alteration()),
    Alter("public", "totals", Alteration(schedule=None)),
    Alter(
        "public",
        "totals",
        Alteration("SELECT 2", "1h", RefreshMode.AUTO, "other", {"tier": None, "max": 3}),
    ),
    Drop("public", "totals", cascade=True),
    RefreshTable("public", "totals"),
    RefreshTable("public", "totals", RefreshMode.DIFFERENTIAL),
    Suspend("public", "totals"),
    Resume("public", "totals"),
    Resume("public", "totals", "apply"),
    Reinit("public", "totals"),
    Repair(),
    ConvertBuffers(),
    Run("DROP STREAM TABLE totals;\n-- 'the' \"end\""),
    Verify("public", "totals", source=True, sample='day=["2026-03-01", null]'),
    Apply("shop", (WANTED,)),
    Apply("shop", (), prune=True, expected=PROJECT_PLAN),
    Attach("crm", "env:CRM", "file:setup", 3, 2, -1),
    AlterDatabase("home", {"quota": None, "priority": 4}),
    Detach("crm"),
)


def sent(value: Any) -> Any:
    return json.loads(to_json(value))


def test_every_command_has_an_example_and_a_verb_of_its_own() -> None:
    assert {type(example) for example in EXAMPLES} == set(COMMANDS)
    assert len({command.verb for command in COMMANDS}) == len(COMMANDS)


@pytest.mark.parametrize("command", EXAMPLES, ids=lambda command: command.verb)
def test_a_command_comes_back(command: Command[Any]) -> None:
    found = decode_command(sent(encode_command(command, PATH)), PATH)
    assert found == command
    assert type(found) is type(command)


options = st.dictionaries(st.text(max_size=5), st.none() | st.text() | st.integers(), max_size=3)


@given(
    st.builds(
        Alteration,
        st.just(KEEP) | st.text(),
        st.just(KEEP) | st.none() | st.text(),
        st.just(KEEP) | st.sampled_from(RefreshMode),
        st.just(KEEP) | st.text(),
        options,
    )
)
def test_kept_options_are_distinguished_from_cleared_ones(asked: Alteration) -> None:
    command = Alter("s", "t", asked)
    found = decode_command(sent(encode_command(command, PATH)), PATH)
    assert found == command
    assert isinstance(found, Alter)
    assert [found.asked.query is KEEP, found.asked.schedule is KEEP] == [
        asked.query is KEEP,
        asked.schedule is KEEP,
    ]


@given(st.lists(st.builds(TableRequest, st.text(), st.text(), options=options), max_size=3))
def test_tables_to_be_made_keep_their_order(requests: list[TableRequest]) -> None:
    command = Create(tuple(requests))
    assert decode_command(sent(encode_command(command, PATH)), PATH) == command


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (NOTHING, None),
        (TABLE, examples.TABLE),
        (TABLES, (examples.TABLE, examples.TABLE)),
        (TABLES, ()),
        (REFRESH, examples.REFRESH),
        (RECEIPT, examples.RECEIPT),
        (PLAN, PROJECT_PLAN),
        (STATEMENTS, (Done("created", "public.totals"), Done("dropped", "s.t"))),
    ],
)
def test_a_result_comes_back(answer: Answer[Any], result: Any) -> None:
    assert answer.decode(sent(answer.encode(result))) == result


def test_a_refresh_keeps_the_order_of_its_phases() -> None:
    found = REFRESH.decode(sent(REFRESH.encode(examples.REFRESH)))
    assert list(found.phases) == list(examples.REFRESH.phases)


@pytest.mark.parametrize(
    "strange",
    [
        {"verb": "dance"},
        {"fields": {"schema": "s", "name": "t", "loudly": True}},
        {"fields": {}},
    ],
)
def test_what_another_version_says_is_refused(strange: dict[str, Any]) -> None:
    with pytest.raises(UserError) as raised:
        decode_command({**encode_command(Suspend("s", "t"), PATH), **strange}, PATH)
    assert raised.value.code == "invalid-option"
    assert "another version" in str(raised.value.hint)


@pytest.mark.parametrize("command", EXAMPLES, ids=lambda command: command.verb)
def test_names_are_looked_up_only_as_they_were_meant(command: Command[Any]) -> None:
    """A query or a script means something else under another search path; a whole name does not."""
    value = encode_command(command, PATH)
    if command.verb in ("create", "create or replace", "alter", "run", "apply"):
        with pytest.raises(UserError) as raised:
            decode_command(value, ("public",))
        assert raised.value.code == "invalid-option"
        assert "in public, not in public, Sales" in str(raised.value.detail)
    else:
        assert decode_command(value, ("public",)) == command
