"""Running statements about stream tables, in order; CREATEs in a row are made together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from headrace.catalog.records import RefreshMode
from headrace.engine import Engine
from headrace.errors import HeadraceError
from headrace.lifecycle.alter import KEEP, Alteration, alter
from headrace.lifecycle.capture_requirements import option_notices
from headrace.lifecycle.create import make
from headrace.lifecycle.drop import drop
from headrace.lifecycle.names import parse_name
from headrace.lifecycle.planned_table import TableRequest
from headrace.lifecycle.rebuild import refresh, resume, resume_mode, suspend
from headrace.statements import (
    AlterStatement,
    CreateStatement,
    DropStatement,
    RefreshStatement,
    Statement,
    VerifyStatement,
    parse,
)
from headrace.verify.oracle import oracle_of
from headrace.verify.sample import SampleRequest
from headrace.verify.verify import verify


@dataclass(frozen=True)
class Done:
    """One statement that was run: what was done to which stream table.

    `equal` is the result of a VERIFY, `notices` name options that have no effect or a limit.
    """

    act: str
    table: str
    equal: bool | None = None
    notices: tuple[str, ...] = ()


def run(engine: Engine, text: str) -> Iterator[Done]:
    """Run the statements of a text, which is read whole before anything is done.

    Each is yielded when it is done. The first failure names its statement and ends the run; the
    statements before stay done.
    """
    for together, group in groupby(
        parse(text), lambda statement: isinstance(statement, CreateStatement)
    ):
        statements = list(group)
        for batch in [statements] if together else [[statement] for statement in statements]:
            try:
                yield from _run(engine, batch)
            except HeadraceError as error:
                where = f"In the statement at {batch[0].place}."
                error.detail = " ".join(part for part in (error.detail, where) if part)
                raise


def _run(engine: Engine, batch: Sequence[Statement]) -> list[Done]:
    creates = [create for create in batch if isinstance(create, CreateStatement)]
    if creates:
        return _create(engine, creates)
    (statement,) = batch
    name = _name(engine, statement)
    match statement:
        case AlterStatement():
            act = _alter(engine, statement, *name)
        case DropStatement():
            act = _drop(engine, statement, *name)
        case RefreshStatement():
            mode = refresh(engine, *name, RefreshMode.FULL if statement.full else None).mode
            act = f"refreshed ({mode})"
        case VerifyStatement():
            return [_verify(engine, statement, *name)]
        case CreateStatement():
            raise AssertionError("taken above")
    return [Done(act, ".".join(name), notices=_notices(engine, act, *name))]


def _create(engine: Engine, creates: Sequence[CreateStatement]) -> list[Done]:
    requests = [TableRequest.of(create.name, create.query, create.options) for create in creates]
    replacing = frozenset(_name(engine, create) for create in creates if create.replace)
    make(engine, requests, replacing)
    act = "created"
    return [
        Done(act, ".".join(name), notices=_notices(engine, act, *name))
        for name in (_name(engine, create) for create in creates)
    ]


def _notices(engine: Engine, act: str, schema: str, name: str) -> tuple[str, ...]:
    """Return the notices about options of a statement that have no effect, or a limit."""
    if act not in ("created", "altered"):
        return ()
    state = engine.catalog.state()
    table = state.stream_table(schema, name)
    return () if table is None else option_notices(state, table)


def _alter(engine: Engine, statement: AlterStatement, schema: str, name: str) -> str:
    if statement.act == "suspend":
        suspend(engine, schema, name)
        return "suspended"
    if statement.act == "resume":
        resume(engine, schema, name, resume_mode(statement.mode))
        return "resumed"
    alteration = Alteration.of(
        statement.options,
        query=KEEP if statement.query is None else statement.query,
        rename_to=KEEP if statement.rename_to is None else statement.rename_to,
    )
    alter(engine, schema, name, alteration)
    return "altered"


def _verify(engine: Engine, statement: VerifyStatement, schema: str, name: str) -> Done:
    oracle = oracle_of(statement.oracle)
    sample = None if statement.sample is None else SampleRequest.of(statement.sample)
    receipt = verify(engine, schema, name, source=statement.source, oracle=oracle, sample=sample)
    unequal = f"NOT EQUAL, {receipt.missing} missing and {receipt.surplus} surplus"
    result = "equal" if receipt.equal else unequal
    return Done(f"verified by {oracle} ({result})", f"{schema}.{name}", receipt.equal)


def _drop(engine: Engine, statement: DropStatement, schema: str, name: str) -> str:
    missing = engine.catalog.state().stream_table(schema, name) is None
    if missing and statement.if_exists:
        return "was not there"
    drop(engine, schema, name, cascade=statement.cascade)
    return "dropped"


def _name(engine: Engine, statement: Statement) -> tuple[str, str]:
    return parse_name(statement.name, engine.database.search_path[0])
