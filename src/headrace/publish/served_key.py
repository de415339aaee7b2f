"""The key of a served table: that of its query, or one that its owner declares. Pure.

The query's own key always holds. A declared one is kept by PostgreSQL: a publish that would break
it fails with `key-violated`, and what was published before stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.catalog.records import OutputColumn, StreamTable
from headrace.errors import UserError
from headrace.publish.column_lists import listed, quoted
from headrace.publish.partitioning import partition_of
from headrace.types import Type

MOST_KEY_COLUMNS = 8
MOST_KEY_CHARACTERS = 100


@dataclass(frozen=True)
class ServedKey:
    """The columns that publish finds rows by, and those that their index has beside them.

    It is `declared` if only its owner says that it is one; `primary` makes it the PRIMARY KEY.
    """

    columns: tuple[str, ...]
    include: tuple[str, ...] = ()
    primary: bool = False
    declared: bool = False

    def __str__(self) -> str:
        kind = "primary key" if self.primary else "unique"
        beside = f" with {', '.join(map(quoted, self.include))} beside it" if self.include else ""
        declared = ", declared" if self.declared else ""
        return f"{kind} on {', '.join(map(quoted, self.columns))}{beside}{declared}"

    @property
    def is_user_requested(self) -> bool:
        """Whether the options request more than the query's own key."""
        return self.declared or self.primary or bool(self.include)

    @property
    def may_break(self) -> bool:
        """Whether rows of the result might not keep it."""
        return self.declared or self.primary


def served_key(table: StreamTable) -> ServedKey | None:
    """Return the key of the index that publish finds rows by, None for a bag or a long key."""
    declared = listed(table.options.get("key"))
    columns = declared or _query_key(table)
    if not columns:
        return None
    include = listed(table.options.get("include"))
    return ServedKey(columns, include, table.options.get("primary_key") is True, bool(declared))


def _query_key(table: StreamTable) -> tuple[str, ...]:
    """Return the query's key, if a unique index can hold and distinguish all its values.

    An index entry has a few kilobytes at most, so text must have a short length; 0.0 and -0.0 are
    one key to an index. That of a partitioned table must have the column that it is partitioned by.
    """
    by = partition_of(table)
    if by is not None and by[1].name not in table.key:
        return ()
    types = {column.name: column.type for column in table.columns}
    short = all(_is_short(types[name]) for name in table.key)
    return table.key if short and len(table.key) <= MOST_KEY_COLUMNS else ()


def _is_short(type_: Type) -> bool:
    if type_.row.unbounded:
        return type_.length is not None and type_.length <= MOST_KEY_CHARACTERS
    # Equal values may read differently, and a row that is updated in place keeps its old key.
    return not type_.row.equal_values_differ


def check_key(
    columns: Sequence[OutputColumn], key: tuple[str, ...], options: Mapping[str, Any]
) -> None:
    """Refuse a key of unsuitable columns or options; `key` is the query's own."""
    declared, include = listed(options.get("key")), listed(options.get("include"))
    types = {column.name: column.type for column in columns}
    for option, names in (("key", declared), ("include", include)):
        for name in names:
            if name not in types:
                raise UserError(
                    "unknown-column",
                    f"{option} names column {name}, which the query does not give",
                    hint=f"Its columns are {', '.join(types)}.",
                )
    for name in declared:
        type_ = types[name]
        padded = type_.kind == "character" and type_.unsized
        if padded or type_.row.equal_values_differ:
            raise UserError(
                "unsupported-type",
                f"column {name} cannot be part of a key: equal values of it may differ",
                hint="Cast it, or declare another key.",
            )
    table = StreamTable("", "", "", "", tuple(columns), (), key=key, options=options)
    served = served_key(table)
    for option in ("include", "primary_key"):
        if options.get(option) and served is None:
            raise UserError(
                "invalid-option",
                f"there is no key that {option} could belong to",
                detail="The result has no key that an index can hold.",
                hint="Declare one: key = 'column, …'.",
            )
    if served is None:
        return
    if len(served.columns) + len(served.include) > 32:
        raise UserError("invalid-option", "an index has at most 32 columns, included ones too")
    twice = [name for name in served.include if name in served.columns]
    if twice:
        raise UserError(
            "invalid-option", f"column {twice[0]} is in the key: its index has it already"
        )
    by = partition_of(table)
    if by is not None and by[1].name not in served.columns:
        raise UserError(
            "invalid-option",
            f"the key has to have column {by[1].name}, which the table is partitioned by",
            detail="PostgreSQL has no unique index across partitions.",
        )


def key_violated(table: StreamTable, detail: str | None) -> UserError:
    """Return the error of a publish after which the key would not hold."""
    key = served_key(table)
    columns = ", ".join(key.columns) if key is not None else ""
    return UserError(
        "key-violated",
        f"({columns}) is no key of {table.schema}.{table.name}",
        detail=detail,
        hint="Mend the rows, or alter the stream table: another key, or key = NULL.",
    )


def index_row_too_large(table: StreamTable, detail: str | None) -> UserError:
    """Return the error of a row whose values do not fit into the index of the key."""
    key = served_key(table)
    options = []
    if key is not None and key.include:
        options.append(("include", key.include))
    if key is not None and (key.declared or not key.include):
        options.append(("key", key.columns))
    text = " and ".join(f"{name} = '{', '.join(map(quoted, names))}'" for name, names in options)
    ways = " or ".join(f"{name} = NULL" for name, _ in options)
    return UserError(
        "index-row-too-large",
        f"a row of {table.schema}.{table.name} is too large for the index of {text}",
        detail=detail,
        hint=f"Alter the stream table: leave columns with long values out, or {ways}.",
    )
