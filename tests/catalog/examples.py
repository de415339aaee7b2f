"""One record of every kind with every field set, and random ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from hypothesis import strategies as st

from headrace.catalog.records import (
    CutRecord,
    DatabaseRecord,
    Effort,
    InputNames,
    OutputColumn,
    Receipt,
    Refresh,
    RefreshMode,
    Relation,
    Source,
    StageRun,
    Status,
    StreamTable,
    ViewRecord,
)
from headrace.source.table import SourceColumn
from headrace.store.log import Pin
from headrace.types import BIGINT, BOOLEAN, DOUBLE, TEXT, Collation, Type, numeric, result_numeric

NOON = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)

TYPES = (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    TEXT,
    numeric(12, 2),
    result_numeric(38, 16, rounded="quotient"),
    Type("character varying", length=20, ordered=False),
    Type("enum", enum='"odd schema"."mood"'),
)

DATABASE = DatabaseRecord(
    1, "home", "7412345678901234567", 3, 9, "10:20:10,14,15", NOON, quota=3, priority=-2
)
ORDERS = Relation(
    "rorders", (("c1", BIGINT), ("c2", numeric(12, 2))), ("c1", "c2"), Pin(version=4, epoch=9)
)
TOTALS = Relation(
    "rtotals",
    (("customer", BIGINT), ("total", result_numeric(38, 2)), ("_rows", BIGINT), ("_seen", BOOLEAN)),
    ("customer", "total"),
    Pin(version=2, epoch=9),
    condition="_seen",
    shown_epoch=7,
)
SOURCE = Source(
    relation="rorders",
    database=1,
    oid=4_000_000_000,
    schema="shop",
    name='or"ders.ü',
    columns=(
        SourceColumn(1, "id", "bigint", BIGINT, not_null=True),
        SourceColumn(3, "amount", "numeric(12,2)", numeric(12, 2)),
        SourceColumn(4, "area", "polygon", None),
    ),
    keys=((1,), (3, 4)),
    storage="16390/0",
    row_triggers=True,
    status=Status.ERROR,
    reason="a value does not fit",
)
TABLE = StreamTable(
    relation="rtotals",
    schema="shop",
    name="Totals",
    query="SELECT customer, sum(amount) AS total FROM orders GROUP BY customer",
    columns=(
        OutputColumn("customer", BIGINT, "bigint"),
        OutputColumn("total", result_numeric(38, 2), "numeric"),
    ),
    inputs=("rorders",),
    key=("customer",),
    refresh_mode=RefreshMode.DIFFERENTIAL,
    schedule="30s",
    options={"tier": "hot", "nested": {"list": [1, 2.5, None, True]}},
    search_path=("shop", "public"),
    status=Status.SUSPENDED,
    reason="column amount was dropped",
    frontier={"rorders": 9},
    epoch=9,
    as_of=NOON,
    created_at=NOON - timedelta(days=1),
    published_at=NOON + timedelta(seconds=2),
    names={"rorders": InputNames("shop", 'or"ders', ("id", "amount"))},
    views=(ViewRecord("shop", "v", "SELECT 1 AS a", ("a",)),),
    held=True,
    awaits_rebuild=True,
    edges={"rorders": ("aggregate", "NOT EXISTS"), "rothers": ()},
    creator="anna",
)
CUT = CutRecord(9, 1, "10:20:10,14,15", NOON)
REFRESH = Refresh(
    table="rtotals",
    epoch=9,
    mode="DIFFERENTIAL",
    reason="the change is small",
    rows_inserted=3,
    rows_deleted=1,
    phases={"stage": 0.25, "cut": 0.5, "a": 1e-7},
    spark_jobs=2,
    started_at=NOON,
    finished_at=NOON + timedelta(seconds=1.5),
    versions={"rtotals": 2},
    stages=(StageRun("rtotals", "DIFFERENTIAL", "sums", 5, 2, 0.125, iterations=3),),
    error="the disk was full",
    iterations=7,
    strata_skipped=2,
    effort=Effort({"rorders": 5}, 100, 0.125, incremental=0.25, full=1e-7, warm=False, first=True),
)
RECEIPT = Receipt(
    table="rtotals",
    epoch=9,
    equal=False,
    rows=100,
    missing=2,
    surplus=1,
    tolerance=1e-9,
    detail={"sample": [["1", None]]},
    verified_at=NOON,
    definition="0a1b",
)
RECORDS = (DATABASE, ORDERS, TOTALS, SOURCE, TABLE)

# PostgreSQL's text holds every character but NUL, and no halves of surrogate pairs.
names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20)
identifiers = st.text("abcdefghijklmnopqrstuvwxyz234567", min_size=1, max_size=8)
numbers = st.integers(0, 2**63 - 1)
moments = st.datetimes(
    datetime(1990, 1, 1),  # noqa: DTZ001
    datetime(2100, 1, 1),  # noqa: DTZ001
    timezones=st.sampled_from((UTC, timezone(timedelta(hours=-9, minutes=-30)))),
)
types = st.sampled_from(TYPES)
# jsonb keeps numbers as decimals, so floats beyond 2**53 may come back as unequal integers.
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-1e15, 1e15, allow_nan=False) | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)


def tuples(of: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(of, max_size=4).map(tuple)


@st.composite
def snapshots(draw: st.DrawFn) -> str:
    # The lower half of an xid8 is an xid, of which 0 to 2 are never given to a transaction.
    low = draw(st.integers(0, 2**8)) * 2**32 + draw(st.integers(3, 2**32 - 100))
    running = draw(st.sets(st.integers(low, low + 50), max_size=4))
    high = max(running, default=low) + 1
    return f"{low}:{high}:{','.join(str(number) for number in sorted(running))}"


databases = st.builds(
    DatabaseRecord,
    id=st.integers(1, 2**31 - 1),
    alias=names,
    system_identifier=names,
    timeline=st.integers(1, 2**31 - 1),
    epoch=numbers,
    snapshot=st.none() | snapshots(),
    cut_at=st.none() | moments,
    quota=st.none() | st.integers(1, 2**31 - 1),
    priority=st.integers(-(2**31), 2**31 - 1),
    failing_since=st.none() | moments,
    failure=st.none() | names,
)
relations = st.builds(
    Relation,
    id=identifiers,
    columns=tuples(st.tuples(names, types)),
    visible=tuples(names),
    pin=st.builds(Pin, version=numbers, epoch=numbers),
    condition=st.none() | names,
    shown_epoch=st.none() | numbers,
)
sources = st.builds(
    Source,
    relation=identifiers,
    database=st.just(1),
    oid=st.integers(1, 2**32 - 1),
    schema=names,
    name=names,
    columns=tuples(
        st.builds(
            SourceColumn,
            number=st.integers(1, 1600),
            name=names,
            declared=names,
            type=st.none() | types,
            not_null=st.booleans(),
        )
    ),
    keys=tuples(tuples(st.integers(1, 1600))),
    storage=names,
    row_triggers=st.booleans(),
    status=st.sampled_from(Status),
    reason=st.none() | names,
    shrunk_at=st.none() | numbers,
)
stream_tables = st.builds(
    StreamTable,
    relation=identifiers,
    schema=names,
    name=names,
    query=names,
    columns=tuples(st.builds(OutputColumn, name=names, type=types, served=names)),
    inputs=tuples(identifiers),
    key=tuples(names),
    refresh_mode=st.sampled_from(RefreshMode),
    schedule=st.none() | names,
    options=st.dictionaries(names, values, max_size=3),
    search_path=tuples(names),
    status=st.sampled_from(Status),
    reason=st.none() | names,
    frontier=st.dictionaries(identifiers, numbers, max_size=3),
    epoch=numbers,
    as_of=st.none() | moments,
    created_at=st.none() | moments,
    published_at=st.none() | moments,
    names=st.dictionaries(
        identifiers, st.builds(InputNames, names, names, tuples(names)), max_size=2
    ),
    views=tuples(st.builds(ViewRecord, names, names, names, tuples(names))),
    held=st.booleans(),
    awaits_rebuild=st.booleans(),
    edges=st.dictionaries(identifiers, tuples(names), max_size=3),
    default_collation=st.sampled_from(Collation),
)
efforts = st.builds(
    Effort,
    changed=st.dictionaries(identifiers, numbers, max_size=3),
    stored=numbers,
    seconds=st.floats(0, 1e9),
    incremental=st.none() | st.floats(0, 1e9),
    full=st.none() | st.floats(0, 1e9),
    warm=st.booleans(),
    first=st.booleans(),
)
refreshes = st.builds(
    Refresh,
    table=identifiers,
    epoch=numbers,
    mode=names,
    reason=names,
    rows_inserted=numbers,
    rows_deleted=numbers,
    phases=st.dictionaries(names, st.floats(0, 1e9), max_size=4),
    spark_jobs=st.integers(0, 2**31 - 1),
    started_at=moments,
    finished_at=moments,
    versions=st.dictionaries(identifiers, numbers, max_size=3),
    error=st.none() | names,
    iterations=st.none() | st.integers(0, 2**31 - 1),
    strata_skipped=st.integers(0, 2**31 - 1),
    effort=st.none() | efforts,
    id=st.none(),
)
receipts = st.builds(
    Receipt,
    table=identifiers,
    epoch=numbers,
    equal=st.booleans(),
    rows=numbers,
    missing=numbers,
    surplus=numbers,
    tolerance=st.none() | st.floats(0, 1),
    detail=st.dictionaries(names, values, max_size=3),
    verified_at=moments,
    id=st.none(),
)
