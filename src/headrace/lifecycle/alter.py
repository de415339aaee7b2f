"""Altering a stream table: its query, its options, its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from headrace.catalog.records import RefreshMode, StreamTable
from headrace.engine import Engine
from headrace.errors import UserError
from headrace.lifecycle.build import build
from headrace.lifecycle.capture_modes import check_modes, declare_anew
from headrace.lifecycle.change import change
from headrace.lifecycle.create import ALTERED, REPARTITIONED
from headrace.lifecycle.names import parse_name, quoted_name
from headrace.lifecycle.partitioning import needs_rebuild, partitions_differ
from headrace.lifecycle.planned_table import TableRequest, check_free
from headrace.lifecycle.planning import plan
from headrace.lifecycle.sources import damaged_sources
from headrace.lifecycle.table_spec import TableSpec
from headrace.publish.partition_scheme import OPTION, SOURCE
from headrace.refresh.refresh import require_table
from headrace.statements.options import checked
from headrace.statements.options import refresh_mode as refresh_mode_of


class Keep(Enum):
    """What is not given stays as it is; None is a value like others."""

    KEEP = "keep"


KEEP = Keep.KEEP


@dataclass(frozen=True)
class Alteration:
    """What shall be different; of `options` None takes one back to its default."""

    query: str | Keep = KEEP
    schedule: str | Keep | None = KEEP
    refresh_mode: RefreshMode | Keep = KEEP
    rename_to: str | Keep = KEEP
    options: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(
        given: Mapping[str, Any], *, query: str | Keep = KEEP, rename_to: str | Keep = KEEP
    ) -> Alteration:
        """The alteration with options as users give them, KEEP included."""
        options = checked({option: v for option, v in given.items() if v is not KEEP})
        if "initialize" in options:
            raise UserError(
                "invalid-option",
                "initialize says how a stream table is created, and cannot be altered",
                hint="Refresh the stream table to fill it.",
            )
        schedule = options.pop("schedule", KEEP)
        mode = refresh_mode_of(options.pop("refresh_mode")) if "refresh_mode" in options else KEEP
        return Alteration(query, schedule, mode, rename_to, options)


def alter(engine: Engine, schema: str, name: str, asked: Alteration) -> StreamTable:
    """Alter the table, all of it or nothing.

    Another query computes it anew, with all that read it, and brings what is served to the new
    rows and columns in place. So do other partitions, for which the served table is made again.
    A table that was never filled stays without rows.
    """
    with engine.writing() as lease:
        state = engine.catalog.state()
        old = require_table(state, schema, name)
        new = _changed(old, asked)
        if (new.schema, new.name) != (old.schema, old.name):
            with engine.database.session() as connection:
                check_free(connection, state, new.schema, new.name)
        taking_over = asked.options.get(OPTION) == SOURCE
        rebuilt = taking_over or needs_rebuild(old.options, new.options)
        if new.query == old.query and not rebuilt:
            check_modes(engine, state, state.with_origins([new]))
            change(engine, old, new, lease.fence)
        else:
            request = TableRequest(
                quoted_name(new.schema, new.name),
                new.query,
                new.schedule,
                new.refresh_mode,
                dict(new.options),
                initialize=not old.is_uninitialized,
            )
            parted = new.query == old.query and partitions_differ(old.options, new.options)
            reason = REPARTITIONED if parted else ALTERED
            wish = TableSpec(reason, request, old)
            build(engine, plan(engine, state, [wish], damaged_sources(engine, state)), lease.fence)
        declare_anew(engine, state, lease.fence)
        return require_table(engine.catalog.state(), new.schema, new.name)


def _changed(table: StreamTable, asked: Alteration) -> StreamTable:
    if not isinstance(asked.query, Keep):
        table = replace(table, query=asked.query)
    if not isinstance(asked.schedule, Keep):
        table = replace(table, schedule=asked.schedule)
    if not isinstance(asked.refresh_mode, Keep):
        table = replace(table, refresh_mode=asked.refresh_mode)
    if not isinstance(asked.rename_to, Keep):
        schema, name = parse_name(asked.rename_to, table.schema)
        table = replace(table, schema=schema, name=name)
    options = {**table.options, **asked.options}
    return replace(table, options={name: v for name, v in options.items() if v is not None})
