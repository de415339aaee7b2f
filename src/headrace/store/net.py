"""The sum of weights a row: what a bag of weighted rows amounts to."""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.compute as pc

from headrace.store.layout import EPOCH, WEIGHT
from headrace.store.lists import as_bytes

_PLACE = "_place"


def net(table: pa.Table) -> pa.Table:
    """Group by all columns but `_weight` (and `_epoch`, which is dropped), sum, drop zeros.

        net(R)(row) = sum of the weights of row in R, where it is not 0

    Rows are equal when their columns are: NULL equals NULL, NaN equals NaN whatever its bits, and
    -0.0 differs from 0.0. The result has the given columns in their order, rows in any order.
    """
    names = [name for name in table.column_names if name != EPOCH]
    keys = [name for name in names if name != WEIGHT]
    rows = one_nan(table.select(names))
    # Without keys Arrow would sum no rows to one NULL.
    if not rows.num_rows:
        return rows
    if any(pa.types.is_list(field.type) for field in rows.schema):
        return _net_with_lists(rows, keys)
    sums = rows.group_by(keys, use_threads=False).aggregate([(WEIGHT, "sum")])
    sums = sums.rename_columns([*keys, WEIGHT]).select(names)
    return sums.filter(pc.not_equal(sums.column(WEIGHT), 0))


def net_retracted(rows: pa.Table) -> pa.Table:
    """The rows, netted if some of them retract others.

    A row that was updated ten times is in a log nineteen times: a join of six such inputs would
    have millions of matches where one is left.
    """
    weights = rows.column(WEIGHT)
    return net(rows) if pc.any(pc.less(weights, 0)).as_py() else rows


def _net_with_lists(rows: pa.Table, keys: list[str]) -> pa.Table:
    """Grouped by the bytes of lists; a group is shown by its first row."""
    grouped = rows.append_column(_PLACE, pa.array(range(rows.num_rows), pa.int64()))
    for position, field in enumerate(rows.schema):
        if pa.types.is_list(field.type):
            column = as_bytes(rows.column(position))
            grouped = grouped.set_column(position, field.name, column)
    sums = grouped.group_by(keys, use_threads=False).aggregate([(WEIGHT, "sum"), (_PLACE, "min")])
    sums = sums.filter(pc.not_equal(sums.column(f"{WEIGHT}_sum"), 0))
    shown = rows.take(sums.column(f"{_PLACE}_min"))
    weight = rows.schema.get_field_index(WEIGHT)
    return shown.set_column(weight, WEIGHT, sums.column(f"{WEIGHT}_sum"))


def one_nan(rows: pa.Table) -> pa.Table:
    """The rows with one NaN for all, because Arrow groups floats by their bits."""
    for position, field in enumerate(rows.schema):
        if pa.types.is_floating(field.type):
            column = rows.column(position)
            nan = pc.is_nan(column)
            if pc.any(nan).as_py():
                same = pc.if_else(nan, pa.scalar(math.nan, field.type), column)
                rows = rows.set_column(position, field, same)
    return rows
