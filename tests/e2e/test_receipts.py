"""Receipts of verify count for the definition that they were made for, and for no other."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

import headrace
from headrace.errors import UserError
from headrace.verify.oracle import Oracle
from headrace.verify.resume import is_verified

pytestmark = pytest.mark.e2e


def proven(project: headrace.Headrace, *names: str) -> list[str]:
    """The tables that `verify --all --resume 1h` leaves out."""
    since = datetime.now(UTC) - timedelta(hours=1)
    return [
        name
        for name in names
        if is_verified(project.receipts(name, current=True), since, Oracle.SPARK)
    ]


def test_a_receipt_is_a_proof_of_the_definition_it_was_made_for(
    project: headrace.Headrace, sql: psycopg.Connection
) -> None:
    sql.execute("CREATE TABLE orders (id int PRIMARY KEY, amount int)")
    sql.execute("INSERT INTO orders SELECT i, i FROM generate_series(1, 9) i")
    names = ("low", "top", "other")
    project.create_stream_table("low", "SELECT id, amount FROM orders WHERE amount < 8")
    project.create_stream_table("top", "SELECT sum(amount) AS total FROM low")
    project.create_stream_table("other", "SELECT count(*) AS n FROM orders")

    def verified() -> list[str]:
        for name in names:
            assert project.verify(name).equal
        return proven(project, *names)

    assert verified() == list(names)
    # What changes no rows that should be there leaves the proof as it is.
    sql.execute("INSERT INTO orders VALUES (10, 1)")
    project.refresh("top")
    project.alter_stream_table("low", schedule="1h")
    project.alter_stream_table("other", rename_to="others")
    names = ("low", "top", "others")
    assert proven(project, *names) == list(names)
    # Another query, and what reads it.
    project.alter_stream_table("low", query="SELECT id, amount FROM orders WHERE amount < 5")
    assert proven(project, *names) == ["others"]
    assert [one.equal for one in project.receipts("low")] == [True], "the history stays"
    assert verified() == list(names)
    project.reinit("top")
    assert proven(project, *names) == ["low", "others"]
    assert project.verify("top", oracle="postgres").equal
    assert project.receipts("top", current=True)[0].oracle == "postgres"
    project.create_or_replace_stream_table("others", "SELECT count(*) + 1 AS n FROM orders")
    assert proven(project, *names) == ["low"]


def test_a_source_that_cannot_be_compared_is_no_proof(
    project: headrace.Headrace, sql: psycopg.Connection
) -> None:
    sql.execute("CREATE TABLE orders (id int PRIMARY KEY)")
    sql.execute("CREATE TABLE items (id int PRIMARY KEY)")
    project.create_stream_table("n", "SELECT o.id FROM orders o JOIN items i ON i.id = o.id")
    receipt = project.verify("n", source=True)
    assert {what for what in receipt.detail if what.startswith("source ")} == {
        "source public.orders",
        "source public.items",
    }
    sql.execute("DROP TABLE items")
    with pytest.raises(UserError) as caught:
        project.verify("n", source=True)
    assert caught.value.code == "unsupported-source"
    assert "public.items" in caught.value.message
    assert len(project.receipts("n")) == 1
