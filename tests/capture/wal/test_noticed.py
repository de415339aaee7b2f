"""Whatever happens to the slot, the publication or the identity between two cuts is noticed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from headrace.capture.cut import open_cut
from headrace.capture.wal.following import Followed, Following
from headrace.capture.wal.identity import ReplicaIdentity, identities
from headrace.capture.wal.publication import (
    PUBLICATION,
    WAIT,
    Entry,
    Publication,
    add_to_publication,
    read_publication,
    remove_from_publication,
)
from headrace.capture.wal.slot import SlotStatus, advance, create, drop, read_status
from headrace.capture.wal.slot_probe import ServerPosition, reason_to_leave, reason_to_leave_source
from headrace.errors import Transient, UserError
from headrace.source.connection import Database
from headrace.source.introspect import find_table
from tests.capture.wal.following import flushed, peeked

Application = psycopg.Connection[Any]
SLOT = "headrace_of_this_test"


class Watch:
    """Records table `t` as it is followed now, and returns what the guard says about it later."""

    def __init__(self, database: Database, slot: str) -> None:
        self.database = database
        self.slot = slot
        with database.session() as connection:
            self.table = find_table(connection, "public", "t")
        add_to_publication(database, self.table)
        position = create(database, slot)
        place, _, publication, identity = self._look()
        assert publication is not None and identity is not None
        entry = publication.entries[self.table.oid]
        self.followed = Followed(
            1,
            datetime.now(UTC),
            (entry.oid, entry.xmin),
            identity.kind,
            identity.key,
            identity.index,
        )
        with database.session() as connection:
            row = connection.execute("SELECT current_database()").fetchone()
        assert row is not None
        self.following = Following(
            slot,
            row[0],
            position,
            publication.oid,
            publication.xmin,
            place.system_identifier,
            place.timeline,
        )

    def _look(
        self,
    ) -> tuple[ServerPosition, SlotStatus | None, Publication | None, ReplicaIdentity | None]:
        with open_cut(self.database, []) as cut:
            status = read_status(cut.connection, self.slot)
            publication = read_publication(cut.connection)
            found = identities(cut.connection, [self.table], self.database.version)
            place = ServerPosition(
                cut.cut.system_identifier, cut.cut.timeline, flushed(self.database)
            )
        return place, status, publication, found.get(self.table.oid)

    def reasons(self) -> tuple[str | None, str | None]:
        """Why the database, and why the table, cannot be followed any more."""
        place, status, publication, identity = self._look()
        return (
            reason_to_leave(self.following, place, status, publication),
            reason_to_leave_source(self.table.oid, self.followed, publication, identity),
        )


@pytest.fixture
def watch(database: Database, application: Application, slot: str) -> Watch:
    application.execute("CREATE TABLE t (a integer PRIMARY KEY, b integer)")
    application.execute("CREATE TABLE u (a integer PRIMARY KEY)")
    return Watch(database, slot)


@pytest.mark.postgres
def test_ordinary_life_is_no_reason(watch: Watch, application: Application) -> None:
    assert watch.reasons() == (None, None)
    application.execute("INSERT INTO t VALUES (1, 1)")
    application.execute("VACUUM t")
    with watch.database.session() as connection:
        other = find_table(connection, "public", "u")
    assert add_to_publication(watch.database, other)
    assert not add_to_publication(watch.database, other)
    remove_from_publication(watch.database, [other.oid])
    application.execute("ALTER TABLE t ADD COLUMN c integer; ANALYZE t")
    assert watch.reasons() == (None, None)
    position = flushed(watch.database)
    watch.following = replace(watch.following, acknowledged=position)
    advance(watch.database, watch.slot, position)
    assert watch.reasons() == (None, None)


# What is done, and what is said of the database and of the table.
DONE = {
    "publication dropped": ("DROP PUBLICATION headrace", "was dropped", "removed from"),
    "publication recreated": (
        "DROP PUBLICATION headrace; CREATE PUBLICATION headrace FOR TABLE t",
        "recreated",
        "for a while",
    ),
    "options changed": (
        "ALTER PUBLICATION headrace SET (publish = 'insert')",
        "options",
        None,
    ),
    "options changed and changed back": (
        "ALTER PUBLICATION headrace SET (publish = 'insert')",
        "ALTER PUBLICATION headrace SET (publish = 'insert, update, delete, truncate')",
        "options",
        None,
    ),
    "table removed": ("ALTER PUBLICATION headrace DROP TABLE t", None, "removed from"),
    "table removed and added": (
        "ALTER PUBLICATION headrace DROP TABLE t",
        "ALTER PUBLICATION headrace ADD TABLE t",
        None,
        "for a while",
    ),
    "rows filtered": (
        "ALTER PUBLICATION headrace SET TABLE t WHERE (a > 1)",
        None,
        "for a while",
    ),
    "slot dropped": (f"SELECT pg_drop_replication_slot('{SLOT}')", "was dropped", None),
    "slot recreated": (
        f"SELECT pg_drop_replication_slot('{SLOT}')",
        f"SELECT pg_create_logical_replication_slot('{SLOT}', 'pgoutput')",
        "recreated",
        None,
    ),
    "slot of another plugin": (
        f"SELECT pg_drop_replication_slot('{SLOT}')",
        f"SELECT pg_create_physical_replication_slot('{SLOT}', true)",
        "not the one",
        None,
    ),
    "slot consumed": (
        "INSERT INTO t VALUES (1, 1)",
        f"SELECT count(*) FROM pg_logical_slot_get_binary_changes('{SLOT}', NULL, NULL,"
        " 'proto_version', '1', 'publication_names', 'headrace')",
        "another client",
        None,
    ),
    "slot advanced": (
        "INSERT INTO t VALUES (1, 1)",
        f"SELECT pg_replication_slot_advance('{SLOT}', pg_current_wal_flush_lsn())",
        "another client",
        None,
    ),
    "identity full": ("ALTER TABLE t REPLICA IDENTITY FULL", None, "identity"),
    "identity nothing": ("ALTER TABLE t REPLICA IDENTITY NOTHING", None, "NOTHING"),
    "key dropped": ("ALTER TABLE t DROP CONSTRAINT t_pkey", None, "no primary key"),
    "another key": (
        "ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (a, b)",
        None,
        "identity",
    ),
    "table dropped": ("DROP TABLE t", None, "removed from"),
    "table recreated": ("DROP TABLE t", "CREATE TABLE t (a integer PRIMARY KEY)", None, "removed"),
}


@pytest.mark.postgres
@pytest.mark.parametrize("case", DONE)
def test_what_is_noticed(watch: Watch, application: Application, case: str) -> None:
    *statements, of_database, of_table = DONE[case]
    for statement in statements:
        assert statement is not None
        application.execute(statement.replace(SLOT, watch.slot))
    for reason, wanted in zip(watch.reasons(), (of_database, of_table), strict=True):
        if wanted is None:
            assert reason is None
        else:
            assert reason is not None and wanted in reason
    if case == "slot of another plugin":
        # A physical slot belongs to no database, so that it does not go with the test's.
        application.execute("SELECT pg_drop_replication_slot(%s)", (watch.slot,))


@pytest.mark.postgres
def test_a_table_removed_and_added_has_lost_changes(watch: Watch, application: Application) -> None:
    """What the guard is for: the slot itself says nothing."""
    application.execute("ALTER PUBLICATION headrace DROP TABLE t")
    application.execute("INSERT INTO t VALUES (1, 1)")
    application.execute("ALTER PUBLICATION headrace ADD TABLE t")
    application.execute("INSERT INTO t VALUES (2, 2)")
    assert len(peeked(watch.database, watch.slot, flushed(watch.database))) == 1
    assert watch.reasons()[1] is not None


@pytest.mark.postgres
def test_the_publication_goes_with_its_last_table(
    database: Database, application: Application
) -> None:
    application.execute("CREATE TABLE t (a integer PRIMARY KEY); CREATE TABLE u (LIKE t)")
    with database.session() as connection:
        t, u = (find_table(connection, "public", name) for name in "tu")
        assert add_to_publication(database, t)
        assert add_to_publication(database, u)
        found = read_publication(connection)
        assert found is not None and found.complete and set(found.entries) == {t.oid, u.oid}
        remove_from_publication(database, [t.oid])
        remove_from_publication(database, [t.oid])
        found = read_publication(connection)
        assert found is not None and set(found.entries) == {u.oid}
        application.execute("ALTER PUBLICATION headrace SET TABLE u WHERE (a > 1)")
        application.execute("ALTER PUBLICATION headrace SET (publish_via_partition_root = false)")
        assert add_to_publication(database, u), "it was not published whole"
        found = read_publication(connection)
        assert found is not None and found.complete and found.entries[u.oid].whole
        remove_from_publication(database, [u.oid])
        assert read_publication(connection) is None
        remove_from_publication(database, [u.oid])


@pytest.mark.postgres
def test_publishing_waits_for_no_writer(
    dsn: str, database: Database, application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only for who alters the table, and then in short attempts."""
    monkeypatch.setattr("headrace.capture.setup.LOCK_MILLISECONDS", 20)
    application.execute("CREATE TABLE t (a integer PRIMARY KEY)")
    with database.session() as connection:
        table = find_table(connection, "public", "t")
    with psycopg.connect(dsn) as other:
        other.execute("LOCK TABLE t IN SHARE UPDATE EXCLUSIVE MODE")
        with pytest.raises(Transient) as busy:
            add_to_publication(database, table)
        assert (busy.value.code, busy.value.detail) == ("source-locked", WAIT)
        other.rollback()
        other.execute("INSERT INTO t VALUES (1)")
        assert add_to_publication(database, table)


@pytest.mark.postgres
def test_a_publication_of_all_tables_is_not_ours(
    database: Database, application: Application
) -> None:
    application.execute("CREATE TABLE t (a integer PRIMARY KEY)")
    application.execute(f"CREATE PUBLICATION {PUBLICATION} FOR ALL TABLES")
    with database.session() as connection:
        table = find_table(connection, "public", "t")
        with pytest.raises(UserError) as refused:
            add_to_publication(database, table)
        assert refused.value.code == "capture-not-set-up"
        remove_from_publication(database, [table.oid])
        assert read_publication(connection) is not None


@pytest.mark.postgres
def test_dropping_twice(watch: Watch) -> None:
    assert drop(watch.database, watch.slot)
    assert not drop(watch.database, watch.slot)


HERE = ServerPosition("77", 1, 500)
RECORDED = Following(SLOT, "shop", 400, 9, "800", "77", 1)
STATUS = SlotStatus("pgoutput", "shop", None, 300, 400, "reserved", 200, None, None)
FOUND = Publication(9, "800", False, True, {5: Entry(6, "801")})


def test_servers_that_are_not_the_one() -> None:
    assert reason_to_leave(RECORDED, HERE, STATUS, FOUND) is None
    for place, word in (
        (replace(HERE, system_identifier="78"), "another server"),
        (replace(HERE, timeline=2), "promoted"),
        (replace(HERE, flushed=399), "ends before"),
    ):
        reason = reason_to_leave(RECORDED, place, STATUS, FOUND)
        assert reason is not None and word in reason


def test_slots_that_were_given_up() -> None:
    behind = replace(STATUS, confirmed=350)
    assert reason_to_leave(RECORDED, HERE, behind, FOUND) is None, "as after a crash of the server"
    for status, word in (
        (replace(STATUS, wal_status="lost"), "invalidated"),
        (replace(STATUS, wal_status="lost"), "raise max_slot_wal_keep_size"),
        (replace(STATUS, invalidated="wal_removed"), "; raise max_slot_wal_keep_size"),
        (
            replace(STATUS, invalidated="idle_timeout"),
            "(idle_timeout); raise idle_replication_slot_timeout",
        ),
        (replace(STATUS, invalidated="wal_level_insufficient"), "(wal_level_insufficient)"),
        (replace(STATUS, restart=None), "invalidated"),
        (replace(STATUS, database="other"), "not the one"),
        (replace(STATUS, confirmed=401), "another client"),
    ):
        reason = reason_to_leave(RECORDED, HERE, status, FOUND)
        assert reason is not None and word in reason
