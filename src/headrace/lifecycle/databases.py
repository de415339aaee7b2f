"""Attach, alter and detach source databases besides the home database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from headrace.boundary.arguments import whole_number
from headrace.catalog import Change, State
from headrace.catalog.records import DatabaseRecord
from headrace.engine import HOME, Engine
from headrace.errors import UserError
from headrace.ingest.unfollow import unfollow
from headrace.settings import resolve
from headrace.source import connection
from headrace.source.conninfo import parse
from headrace.source.server import ServerIdentity, server_identity

LONGEST_ALIAS = 31
LARGEST_SHARE = 1_000_000
LARGEST_QUOTA = 10_000
LARGEST_PRIORITY = 1000


def attach(
    engine: Engine,
    alias: str,
    dsn: str,
    setup_dsn: str | None = None,
    share: int = 1,
    quota: int | None = None,
    priority: int = 0,
) -> DatabaseRecord:
    """Attach a database under an alias; repeating it changes its connection strings and claim.

    Raise UserError where the alias has another meaning already, where the database is attached
    under another alias, and where a password would be stored in the catalog.
    """
    _check_alias(engine, alias)
    claim = checked_claim({"share": share, "quota": quota, "priority": priority})
    for address in (dsn, setup_dsn):
        if address is not None:
            _refuse_password(address)
    identity = _identity(_opened(dsn, setup_dsn))
    system, oid = identity.system_identifier, identity.database
    with engine.writing() as lease:
        state = engine.catalog.state()
        record = next((database for database in state.databases if database.alias == alias), None)
        _refuse_same(engine, state, alias, (system, oid))
        if record is None:
            number = max((HOME, *(database.id for database in state.databases))) + 1
            record = DatabaseRecord(number, alias, system, identity.timeline, oid=oid)
        elif (record.system_identifier, record.oid) != (system, oid):
            raise UserError(
                "name-exists",
                f"alias {alias} is already in use by another database",
                hint=f"Detach {alias} first, or choose another alias.",
            )
        record = replace(record, address=dsn, setup_address=setup_dsn, **claim)
        engine.catalog.commit(Change(put=(record,)), fence=lease.fence)
    return record


def alter_database(engine: Engine, alias: str, changes: Mapping[str, Any]) -> DatabaseRecord:
    """Change what a database, attached or home, may claim of a daemon's workers."""
    claim = checked_claim(changes)
    if not claim:
        raise UserError(
            "invalid-option", "nothing to alter: give at least one of share, quota and priority"
        )
    with engine.writing() as lease:
        state = engine.catalog.state()
        if alias == "home":
            at_home = (database for database in state.databases if database.id == HOME)
            record = next(at_home, DatabaseRecord(HOME, "home", "", 0))
        else:
            record = require_attached(state, alias)
        record = replace(record, **claim)
        engine.catalog.commit(Change(put=(record,)), fence=lease.fence)
    return record


def checked_claim(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the claim on workers if its values are valid; a quota may be None."""
    for name, value in changes.items():
        if name == "share":
            whole_number(name, value, most=LARGEST_SHARE)
        elif name == "priority":
            whole_number(name, value, -LARGEST_PRIORITY, LARGEST_PRIORITY)
        elif value is not None:
            whole_number(name, value, most=LARGEST_QUOTA)
    return dict(changes)


def detach(engine: Engine, alias: str) -> None:
    """Forget an attached database; `has-dependents` while stream tables read it."""
    with engine.writing() as lease:
        state = engine.catalog.state()
        record = require_attached(state, alias)
        sources = [source for source in state.sources if source.database == record.id]
        readers = sorted(
            {f"{t.schema}.{t.name}" for source in sources for t in state.readers(source.relation)}
        )
        if sources:
            raise UserError(
                "has-dependents",
                f"tables of database {alias} are still captured",
                detail=f"They are read by {', '.join(readers)}." if readers else None,
                hint="First drop the stream tables that read them.",
            )
        unfollow(engine, state, record.id, (), lease.fence)
        engine.catalog.commit(Change(remove=(record,)), fence=lease.fence)
    engine.forget_database(record)


def require_attached(state: State, alias: str) -> DatabaseRecord:
    """Return the attached database of that alias, or raise UserError listing the aliases."""
    attached = [database for database in state.databases if database.id != HOME]
    record = next((database for database in attached if database.alias == alias), None)
    if record is None:
        names = ", ".join(database.alias for database in attached) or "none"
        raise UserError(
            "unknown-database",
            f"no database is attached as {alias}",
            hint=f"The attached databases are: {names}.",
        )
    return record


def _check_alias(engine: Engine, alias: str) -> None:
    """Refuse an alias that is not a plain lower-case name, or that means the home database."""
    plain = alias.isascii() and alias.replace("_", "a").isalnum() and not alias[0].isdigit()
    if not plain or alias != alias.lower() or len(alias) > LONGEST_ALIAS:
        raise UserError(
            "invalid-name",
            f"invalid database alias {alias!r}",
            hint=f"Use up to {LONGEST_ALIAS} lower-case letters, digits and underscores.",
        )
    with engine.database.session() as home:
        if alias in ("home", home.info.dbname):
            raise UserError("name-exists", f"{alias} is the name of the home database")


def _refuse_password(address: str) -> None:
    if address.startswith(("env:", "file:")):
        return
    parts = parse(address)
    if "password" in parts or "sslpassword" in parts:
        raise UserError(
            "invalid-dsn",
            "connection string contains a password, which would be stored in the catalog",
            hint="Keep it in an environment variable or a file and give env:NAME or file:PATH; or"
            " leave the password to PostgreSQL's own password file.",
        )


def _opened(dsn: str, setup_dsn: str | None) -> connection.Database:
    return connection.Database(resolve(dsn), None if setup_dsn is None else resolve(setup_dsn))


def _identity(database: connection.Database) -> ServerIdentity:
    """Return the identity of a database, which has to be one that can be captured."""
    with database, database.session() as session:
        return server_identity(session)


def _refuse_same(engine: Engine, state: State, alias: str, identity: tuple[str, int]) -> None:
    """Refuse a database that is attached under another name: it would be captured twice."""
    with engine.database.session() as session:
        home = server_identity(session)
    at_home = (home.system_identifier, home.database) == identity
    names = [
        database.alias
        for database in state.databases
        if database.id != HOME
        and database.alias != alias
        and (database.system_identifier, database.oid) == identity
    ]
    if at_home or names:
        called = "the home database" if at_home else f"attached as {names[0]}"
        raise UserError("name-exists", f"this database is already {called}")
