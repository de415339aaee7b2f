"""The rows of a Parquet file with certain keys, without the others in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from headrace.store.groups import Footer
from headrace.store.keys import Keys, Mask
from headrace.store.layout import weighted
from headrace.store.location import StoreLocation

BATCH_ROWS = 65_536

By = Literal["best", "index", "pruned", "scan"]


class LookupCost(NamedTuple):
    """How many stored rows a look-up compares with the keys, and whether an index helps it."""

    rows: int
    indexed: bool = False


def read_columns(place: StoreLocation, uri: str, names: Collection[str]) -> pa.Table:
    """Some columns of all rows of a file."""
    with place.files.open_input_file(place.path(uri)) as source:
        return pq.ParquetFile(source).read([*names])


def read_footer(files: pafs.FileSystem, path: str, names: Iterable[str]) -> Footer:
    """What a file says of its row groups, with the bounds of these columns."""
    with files.open_input_file(path) as source:
        return Footer.of(pq.ParquetFile(source).metadata, names)


def read_matching(
    files: pafs.FileSystem,
    path: str,
    footer: Footer,
    groups: Mask,
    columns: pa.Schema,
    keys: Keys,
    most: int | None = None,
) -> pa.Table:
    """The weighted rows of some row groups whose key is in the set; more than `most` are not all.

    The columns of the key are read first, and nothing else of row groups without such a key. A
    file of which no row group is asked for is not even opened.
    """
    wanted = weighted(columns)
    found, count = [wanted.empty_table()], 0
    if not groups.any():
        return found[0]
    key = pa.schema([wanted.field(name) for name in keys.names])
    with files.open_input_file(path) as source:
        part = pq.ParquetFile(source)
        for together in _together(np.flatnonzero(groups).tolist(), footer):
            compared = part.read_row_groups(together, key.names).select(key.names).cast(key)
            sizes = footer.rows[together]
            has = np.split(keys.has(compared), np.cumsum(sizes)[:-1])
            chosen = [group for group, each in zip(together, has, strict=True) if each.any()]
            matches = np.concatenate([np.zeros(0, np.bool_), *(each for each in has if each.any())])
            start = 0
            for batch in part.iter_batches(BATCH_ROWS, chosen, wanted.names) if chosen else ():
                here = matches[start : start + batch.num_rows]
                start += batch.num_rows
                if here.any():
                    rows = pa.Table.from_batches([batch.filter(pa.array(here))])
                    found.append(rows.select(wanted.names).cast(wanted))
                    count += rows.num_rows
                if most is not None and count > most:
                    return pa.concat_tables(found)
    return pa.concat_tables(found)


def _together(groups: list[int], footer: Footer) -> Iterator[list[int]]:
    """Row groups whose keys are read at once: as many as have the rows of a batch, or one."""
    run: list[int] = []
    rows = 0
    for group in groups:
        rows += int(footer.rows[group])
        if run and rows > BATCH_ROWS:
            yield run
            run, rows = [], int(footer.rows[group])
        run.append(group)
    yield run
