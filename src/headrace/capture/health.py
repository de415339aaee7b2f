"""The health of a source's capture: the installed objects, and the notes that they left."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from psycopg import Connection, Cursor, sql

from headrace.capture.layout import EMPTIED, FULL, FUNCTION_MARK, NOTE_MARK, SET_UP, UNSEEN
from headrace.capture.triggers import (
    REPLICA_TRIGGER,
    ROW_TRIGGER,
    STATEMENT_TRIGGERS,
    definition,
    function_mark,
    trigger_names,
)
from headrace.source.faults import translated
from headrace.source.introspect import CAPTURE_SCHEMA, NEEDED_FUNCTIONS
from headrace.source.table import SourceTable

RIGHTS = "the owner of the trigger function lacks a right that recording changes needs"

# Name, mode (tgenabled), type (tgtype) and transition tables in pg_trigger of each trigger.
ROW_TYPE = 1 + 4 + 8 + 16
TYPES = {"INSERT": 4, "DELETE": 8, "UPDATE": 16}
TRIGGERS = (
    (ROW_TRIGGER, "A", ROW_TYPE, "", ""),
    (REPLICA_TRIGGER, "R", ROW_TYPE, "", ""),
    *(
        (
            name,
            "A",
            TYPES[event],
            "headrace_old" if "OLD TABLE" in tables else "",
            "headrace_new" if "NEW TABLE" in tables else "",
        )
        for name, event, tables in STATEMENT_TRIGGERS
    ),
)

PRESENT = sql.SQL("SELECT count(*) = 4 FROM pg_class c WHERE c.oid IN ({})").format(
    sql.SQL(", ").join(
        sql.SQL("to_regclass({})").format(sql.Literal(f"{CAPTURE_SCHEMA}.{name}"))
        for name in ("sources", "recopy_reasons", "alive", "announced")
    )
)

HEALTH = sql.SQL("""
WITH RECURSIVE tree AS (
    SELECT c.oid AS root, c.oid FROM pg_class c WHERE c.oid = ANY (%(oids)s::oid[])
    UNION ALL
    SELECT t.root, i.inhrelid FROM tree t JOIN pg_inherits i ON i.inhparent = t.oid
)
SELECT s.source, s.definition, s.unlogged, s.max_buffer_bytes, s.acknowledged_epoch,
    s.copy_due,
    (
        SELECT d.reason FROM {schema}.recopy_reasons d WHERE d.source = s.source
        ORDER BY d.reason IN ({set_up}, {full}), d.noted_at LIMIT 1
    ),
    EXISTS (SELECT FROM {schema}.alive a WHERE a.source = s.source),
    coalesce(b.relpersistence = 'u', false) OR EXISTS (
        SELECT FROM tree t JOIN pg_class c ON c.oid = t.oid
        WHERE t.root = s.source AND c.relpersistence = 'u'
    ),
    ARRAY(
        SELECT a.attname FROM pg_attribute a
        WHERE a.attrelid = b.oid AND a.attnum > 0 AND NOT a.attisdropped
    ),
    ARRAY(
        SELECT g.tgname FROM pg_trigger g
        WHERE g.tgrelid = s.source AND g.tgfoid = f.oid
            AND g.tgqual IS NULL AND g.tgattr::text = ''
            AND (
                g.tgname, g.tgenabled, g.tgtype,
                coalesce(g.tgoldtable, ''), coalesce(g.tgnewtable, '')
            ) IN ({triggers})
    ),
    (
        SELECT count(*) FROM tree t JOIN pg_class c ON c.oid = t.oid
        WHERE t.root = s.source AND t.oid <> s.source AND NOT EXISTS (
            SELECT FROM pg_trigger g
            WHERE g.tgrelid = c.oid AND g.tgfoid = f.oid AND g.tgenabled = 'A'
                AND g.tgqual IS NULL AND g.tgattr::text = '' AND g.tgtype = {row}
        )
    ),
    coalesce(has_function_privilege(r.relowner, f.oid, 'EXECUTE'), false),
    coalesce(
        f.prosecdef
        AND has_schema_privilege(f.proowner, n.oid, 'USAGE')
        AND has_table_privilege(f.proowner, b.oid, 'INSERT')
        AND has_table_privilege(f.proowner, d.oid, 'INSERT')
        AND has_function_privilege(f.proowner, m.oid, 'EXECUTE')
        AND NOT EXISTS (
            SELECT FROM pg_proc p
            WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.proname IN ({needed})
                AND NOT has_function_privilege(f.proowner, p.oid, 'EXECUTE')
        ),
        false
    ),
    {function_mark}, {note_mark}
FROM {schema}.sources s
LEFT JOIN pg_namespace n ON n.nspname = {name}
LEFT JOIN pg_class b ON b.relnamespace = n.oid AND b.relname = 'buffer_' || s.source
LEFT JOIN pg_proc f ON f.pronamespace = n.oid AND f.proname = 'capture_' || s.source
    AND f.pronargs = 0
LEFT JOIN pg_class d ON d.relnamespace = n.oid AND d.relname = 'recopy_reasons'
LEFT JOIN pg_proc m ON m.pronamespace = n.oid AND m.proname = 'note_recopy_reason'
    AND oidvectortypes(m.proargtypes) = 'oid, text'
LEFT JOIN pg_class r ON r.oid = s.source
WHERE s.source = ANY (%(oids)s::oid[])
""").format(
    schema=sql.Identifier(CAPTURE_SCHEMA),
    name=sql.Literal(CAPTURE_SCHEMA),
    set_up=sql.Literal(SET_UP),
    full=sql.Literal(FULL),
    triggers=sql.SQL(", ").join(
        sql.SQL("({})").format(sql.SQL(", ").join(map(sql.Literal, trigger)))
        for trigger in TRIGGERS
    ),
    row=sql.Literal(ROW_TYPE),
    function_mark=FUNCTION_MARK.format(f=sql.Identifier("f")),
    note_mark=FUNCTION_MARK.format(f=sql.Identifier("m")),
    needed=sql.SQL(", ").join(map(sql.Literal, NEEDED_FUNCTIONS)),
)


@dataclass(frozen=True)
class CaptureHealth:
    """The capture of one source in a snapshot.

    `copy_due` and `recopy_reason` are reasons to copy the source again, the first recorded when a
    copy was begun, the second noted by triggers. `alive` is false once the server crashed after a
    copy, which matters where a table is `unlogged`. `permitted`: the function's owner, with whose
    rights it runs, may record changes and leave notes. `function` and `note_function` are the marks
    of the trigger function and of `note_recopy_reason`, see `FUNCTION_MARK`.
    """

    source: int
    definition: str
    unlogged_buffer: bool
    max_buffer_bytes: int
    acknowledged_epoch: int
    copy_due: str | None
    recopy_reason: str | None
    alive: bool
    unlogged: bool
    buffer_columns: frozenset[str]
    triggers: frozenset[str]
    bare_partitions: int
    executable: bool
    permitted: bool
    function: str
    note_function: str

    def fault(self, table: SourceTable, whole: SourceTable | None = None) -> str | None:
        """Return the fault that keeps changes of `table`'s captured columns from being recorded.

        Triggers may record more columns of the `whole` table than those, as a DBA's script does.
        """
        columns = {"_seq", "_xid", "_weight", *(column.physical for column in table.stored)}
        missing = sorted(set(trigger_names(table)) - self.triggers)
        if not self.buffer_columns >= columns:
            return "the buffer is missing or was changed"
        if missing:
            return f"trigger {missing[0]} is missing, disabled or changed"
        if not self.permitted:
            return RIGHTS
        if self.bare_partitions and table.row_triggers:
            return "a trigger on a partition is missing, disabled or changed"
        if table.row_triggers and not self.executable:
            return "the table's owner may not execute the trigger function"
        described = self._described(table, whole)
        if described is None:
            return "captured columns are not what they were when capture was set up"
        if not self._is_function_of(described) or not self.notes_failures:
            return "a function of the triggers is not what it was when capture was set up"
        return None

    def recorded(self, table: SourceTable, whole: SourceTable | None = None) -> SourceTable | None:
        """Return the table with the columns that triggers record; None for another definition."""
        described = self._described(table, whole)
        return described if described is not None and self._is_function_of(described) else None

    @property
    def notes_failures(self) -> bool:
        """Whether the function that notes failures is the one that was set up."""
        return self.note_function == NOTE_MARK

    def _is_function_of(self, table: SourceTable) -> bool:
        return self.function == function_mark(table, self.max_buffer_bytes)

    def _described(
        self, table: SourceTable, whole: SourceTable | None = None
    ) -> SourceTable | None:
        """Return the table with the columns for which capture was set up."""
        more = table if whole is None else recorded_part(whole, self.buffer_columns)
        for candidate in (table, more):
            if definition(candidate, unlogged=self.unlogged_buffer) == self.definition:
                return candidate
        return None

    @property
    def failing(self) -> bool:
        """Whether a trigger failed for a reason that `fault` cannot see."""
        return self.recopy_reason not in (None, SET_UP, FULL, EMPTIED, UNSEEN)

    def emptied(self) -> str | None:
        """Return the reason to recopy if a crash of the server emptied an unlogged table."""
        if self.unlogged and not self.alive:
            return EMPTIED
        return None


def recorded_part(table: SourceTable, buffered: Collection[str]) -> SourceTable:
    """Return the table with only those columns typed that a buffer has."""
    return replace(
        table,
        columns=tuple(
            column if column.physical in buffered else replace(column, type=None)
            for column in table.columns
        ),
    )


def capture_present(connection: Connection[Any]) -> bool:
    """Return whether the capture tables exist that all sources of a database share."""
    with translated():
        row = connection.execute(PRESENT).fetchone()
    return bool(row and row[0])


def ask_health(connection: Connection[Any], oids: Iterable[int]) -> Cursor[Any]:
    """Send the query for capture health; in a pipeline the answer is read later.

    Needs `capture_present`.
    """
    return connection.execute(HEALTH, {"oids": sorted(oids)})


def read_health(answer: Cursor[Any]) -> dict[int, CaptureHealth]:
    """Return capture health by source from the answer to `ask_health`.

    A source without capture is left out.
    """
    records = [CaptureHealth(*_frozen(row)) for row in answer]
    return {health.source: health for health in records}


def _frozen(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(frozenset(value) if isinstance(value, list) else value for value in row)


def check(
    connection: Connection[Any],
    tables: Iterable[SourceTable],
    whole: Mapping[int, SourceTable] | None = None,
) -> dict[int, str]:
    """Return the tables (oids) whose changes are not being recorded, each with the reason.

    `tables` have their captured columns; `whole` has the same tables, by oid, with all columns.
    """
    tables, whole = tuple(tables), whole or {}
    missing = "capture is not set up"
    if not capture_present(connection):
        return {table.oid: missing for table in tables}
    with translated():
        health = read_health(ask_health(connection, [table.oid for table in tables]))
    faults = {
        table.oid: health[table.oid].fault(table, whole.get(table.oid))
        if table.oid in health
        else missing
        for table in tables
    }
    return {oid: fault for oid, fault in faults.items() if fault is not None}
