"""Reading rows of a source, live or from its buffer, into the Arrow form that is stored.

One SELECT list serves both: the initial copy reads the table itself, ingest its buffer. PostgreSQL
checks which values do not fit (`Type.misfit`): each row has the result in `_misfit`, because Arrow
would silently accept an infinite date or too long a numeric.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from psycopg import Connection, sql

from headrace.errors import NeedsReinit
from headrace.source.faults import translated
from headrace.source.table import SourceColumn, SourceTable
from headrace.types import Type

WEIGHT = "_weight"
MISFIT = "_misfit"
MAXIMUM_SHOWN_COLUMNS = 12
MAXIMUM_SHOWN_LENGTH = 100
# Arrow parses this many digits correctly; with more it may silently keep the wrong ones.
MAXIMUM_PARSED_LENGTH = 38


def relation_sql(schema: str, name: str) -> str:
    """Return ONLY and the quoted name: one table, without those that inherit from it."""
    return sql.SQL("ONLY {}").format(sql.Identifier(schema, name)).as_string()


def read_sql(
    relation: str, columns: Sequence[SourceColumn], where: str = "true", *, buffered: bool = False
) -> str:
    """Return a SELECT of `columns`, by their physical names, and of `_misfit` if needed.

    `relation` and `where` are SQL text, quoted by the caller. `buffered` reads a buffer: its
    columns have physical names already, and `_weight` comes first.
    """
    return (
        sql.SQL("SELECT {} FROM {} WHERE {}")
        .format(sql.SQL(select_list(columns, buffered=buffered)), sql.SQL(relation), sql.SQL(where))
        .as_string()
    )


def select_list(columns: Sequence[SourceColumn], *, buffered: bool = False) -> str:
    """Return the SELECT list of `read_sql`, for other queries."""
    items = [
        sql.SQL("{} AS {}").format(_value(column, buffered), sql.Identifier(column.physical))
        for column in columns
    ]
    if buffered:
        items.insert(0, sql.SQL("{weight}::bigint AS {weight}").format(weight=_name(WEIGHT)))
    elif not columns:
        # Rows without a stored column still count.
        items.append(sql.SQL("1::bigint AS {}").format(_name(WEIGHT)))
    misfits = _misfits(columns, buffered)
    if misfits:
        # NULL fits, and a condition over NULL is NULL.
        condition = sql.SQL(" OR ").join([condition for _, condition in misfits])
        items.append(sql.SQL("coalesce({}, false) AS {}").format(condition, _name(MISFIT)))
    return sql.SQL(", ").join(items).as_string()


def has_misfits(columns: Sequence[SourceColumn]) -> bool:
    """Return whether some value of the columns may not fit, so that rows have `_misfit`."""
    return any(_type(column).misfit is not None for column in columns)


def misfit_sql(
    relation: str, table: SourceTable, where: str = "true", *, buffered: bool = False
) -> str | None:
    """Return a SELECT of column, value and row of a value that does not fit; None if all fit."""
    misfits = _misfits(table.stored, buffered)
    if not misfits:
        return None
    names = [
        sql.SQL("WHEN {} THEN {}").format(condition, sql.Literal(column.name))
        for column, condition in misfits
    ]
    values = [
        sql.SQL("WHEN {} THEN {}").format(condition, _text(column, buffered))
        for column, condition in misfits
    ]
    row_columns = [
        sql.SQL("{}, left({}, {})").format(
            sql.Literal(column.name), _text(column, buffered), MAXIMUM_SHOWN_LENGTH
        )
        for column in identifying_columns(table)
    ]
    return (
        sql.SQL(
            "SELECT CASE {names} END, CASE {values} END, json_build_object({shown})"
            " FROM {relation} WHERE ({where}) AND ({condition}) LIMIT 1"
        )
        .format(
            names=sql.SQL(" ").join(names),
            values=sql.SQL(" ").join(values),
            shown=sql.SQL(", ").join(row_columns),
            relation=sql.SQL(relation),
            where=sql.SQL(where),
            condition=sql.SQL(" OR ").join([condition for _, condition in misfits]),
        )
        .as_string()
    )


def find_misfit(
    connection: Connection[Any],
    relation: str,
    table: SourceTable,
    where: str = "true",
    *,
    buffered: bool = False,
) -> NeedsReinit | None:
    """Return the error for a value that does not fit, with column and row; None without one."""
    query = misfit_sql(relation, table, where, buffered=buffered)
    if query is None:
        return None
    with translated():
        misfit = connection.execute(sql.SQL(query)).fetchone()
    if misfit is None:
        return None
    column, value, row = misfit
    row_text = ", ".join(
        f"{name} = {'NULL' if text is None else text}" for name, text in row.items()
    )
    return does_not_fit(
        f'column "{column}" of {table.schema}.{table.name}',
        f"The value is {value[:MAXIMUM_SHOWN_LENGTH]}, in the row with {row_text}.",
    )


def has_misfit(data: pa.Table) -> bool:
    """Return whether PostgreSQL marked a value that does not fit."""
    return MISFIT in data.column_names and bool(pc.any(data[MISFIT]).as_py())


def to_stored(data: pa.Table | pa.RecordBatch, columns: Sequence[SourceColumn]) -> pa.Table:
    """Return a result of `read_sql` in the stored types; raise `value-does-not-fit`.

    The error cannot name the row: `find_misfit` can.
    """
    table = pa.Table.from_batches([data]) if isinstance(data, pa.RecordBatch) else data
    if has_misfit(table):
        raise does_not_fit("a column of a source", None)
    weight = [(WEIGHT, table[WEIGHT].cast(pa.int64()))] if WEIGHT in table.column_names else []
    stored = [(column.physical, _cast(table[column.physical], _type(column))) for column in columns]
    return pa.table(dict(weight + stored))


def stored_schema(columns: Sequence[SourceColumn], *, weighted: bool = False) -> pa.Schema:
    """Return the Arrow schema of the result of `to_stored`."""
    weight = [pa.field(WEIGHT, pa.int64())] if weighted else []
    fields = [pa.field(column.physical, _type(column).arrow) for column in columns]
    return pa.schema(weight + fields)


def _cast(values: pa.ChunkedArray, type_: Type) -> pa.ChunkedArray:
    if type_.element is not None:
        lists = [_cast_elements(chunk, type_.element) for chunk in values.chunks]
        return pa.chunked_array(lists, type_.arrow)
    if type_.kind != "numeric":
        return values.cast(type_.arrow)
    # '1.' with forty zeros fits decimal(38,1), but Arrow reads 0.0: parse long texts one by one.
    is_long = pc.fill_null(pc.greater(pc.utf8_length(values), MAXIMUM_PARSED_LENGTH), False)
    if not pc.any(is_long).as_py():
        return values.cast(type_.arrow)
    short = pc.if_else(is_long, pa.scalar(None, pa.string()), values).cast(type_.arrow)
    exact = [_rescaled(text, type_) for text in values.filter(is_long).to_pylist()]
    replaced = pc.replace_with_mask(
        short.combine_chunks(), is_long.combine_chunks(), pa.array(exact, type_.arrow)
    )
    return pa.chunked_array([replaced])


def _cast_elements(lists: pa.ListArray, element: Type) -> pa.ListArray:
    """Return the lists with each element cast to its stored type."""
    # The elements of NULL lists and those outside of a slice stay where they are.
    elements = _cast(pa.chunked_array([lists.values]), element).combine_chunks()
    mask = lists.is_null() if lists.null_count else None
    if lists.offset and mask is not None:
        return _cast_elements(pa.concat_arrays([lists]), element)
    return pa.ListArray.from_arrays(lists.offsets, elements, mask=mask)


def _rescaled(text: str, type_: Type) -> Decimal:
    """Return the decimal with the type's scale; raise if digits beyond it are not zeros."""
    assert type_.scale is not None
    sign, digits, exponent = Decimal(text).as_tuple()
    assert isinstance(exponent, int)
    surplus = max(-exponent - type_.scale, 0)
    if any(digits[len(digits) - surplus :]):
        raise does_not_fit("a numeric column of a source", f"The value is {text}.")
    return Decimal((sign, digits[: len(digits) - surplus] or (0,), exponent + surplus))


def _type(column: SourceColumn) -> Type:
    if column.type is None:
        raise AssertionError(f"column {column.name!r} has no stored type")
    return column.type


def _name(name: str) -> sql.Identifier:
    return sql.Identifier(name)


def _reference(column: SourceColumn, buffered: bool) -> sql.Identifier:
    return sql.Identifier(column.physical if buffered else column.name)


def _value(column: SourceColumn, buffered: bool) -> sql.Composed:
    type_ = _type(column)
    template = type_.read
    if type_.element is not None:
        # The driver fails on unknown bounds; `_misfit` of the row reports the value.
        template = f"CASE WHEN {type_.row.misfit} THEN NULL ELSE {template} END"
    return sql.SQL(template).format(column=_reference(column, buffered))


def _text(column: SourceColumn, buffered: bool) -> sql.Composed:
    return sql.SQL(_type(column).as_text).format(column=_reference(column, buffered))


def _misfits(
    columns: Sequence[SourceColumn], buffered: bool
) -> list[tuple[SourceColumn, sql.Composed]]:
    """Return the condition for a misfit of each column that may have one.

    A buffer's column may be older than its type.
    """
    templates = (_type(c).misfit if buffered else _type(c).column_misfit for c in columns)
    return [
        (column, sql.SQL(template).format(column=_reference(column, buffered)))
        for column, template in zip(columns, templates, strict=True)
        if template is not None
    ]


def identifying_columns(table: SourceTable) -> tuple[SourceColumn, ...]:
    """Return the columns that identify a row in messages: the first stored key, or a few."""
    stored = {column.number: column for column in table.stored}
    for key in table.keys:
        if all(number in stored for number in key):
            return tuple(stored[number] for number in key)
    return table.stored[:MAXIMUM_SHOWN_COLUMNS]


def does_not_fit(what: str, detail: str | None) -> NeedsReinit:
    """Return the error for a value that its stored type cannot hold."""
    return NeedsReinit(
        "value-does-not-fit",
        f"{what} holds a value that cannot be stored",
        detail=detail,
        hint="Change the value in the source, then resume the tables that read it.",
    )
