"""The rows of a Parquet file with certain keys, without the others in memory."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from headrace.store.keys import Keys
from headrace.store.layout import weighted

BATCH_ROWS = 65_536


def read_matching(
    files: pafs.FileSystem,
    path: str,
    columns: pa.Schema,
    keys: Keys,
    most: int | None = None,
) -> pa.Table:
    """The weighted rows of a file whose key is in the set; more than `most` are not all.

    The columns of the key are read first. Of row groups without such a key nothing else is read,
    and not even that where their statistics rule it out.
    """
    wanted = weighted(columns)
    key = pa.schema([wanted.field(name) for name in keys.names])
    found, count = [wanted.empty_table()], 0
    with files.open_input_file(path) as source:
        part = pq.ParquetFile(source)
        for number in range(part.num_row_groups):
            if not _may_match(part.metadata.row_group(number), keys):
                continue
            group = part.read_row_group(number, key.names).select(key.names).cast(key)
            matches = keys.has(group)
            if not matches.any():
                continue
            start = 0
            for batch in part.iter_batches(BATCH_ROWS, [number], wanted.names):
                chosen = matches[start : start + batch.num_rows]
                start += batch.num_rows
                if chosen.any():
                    rows = pa.Table.from_batches([batch.filter(pa.array(chosen))])
                    found.append(rows.select(wanted.names).cast(wanted))
                    count += rows.num_rows
                if most is not None and count > most:
                    return pa.concat_tables(found)
    return pa.concat_tables(found)


def _may_match(group: pq.RowGroupMetaData, keys: Keys) -> bool:
    """Whether the whole numbers of the group's keys, as its statistics have them, may be wanted."""
    for position in range(group.num_columns):
        column = group.column(position)
        if column.path_in_schema not in keys.integers:
            continue
        found = column.statistics
        if found is None or not found.has_min_max:
            continue
        if not keys.between(column.path_in_schema, found.min, found.max):
            return False
    return True
