"""Values of every kind come out of the log as a copy of the table reads them."""

from __future__ import annotations

import psycopg
import pytest

from headrace.capture.wal.read import differences, type_names
from headrace.capture.wal.value_decoders import stored_images
from headrace.errors import NeedsReinit
from headrace.source.reading import read_sql, relation_sql, to_stored
from headrace.types import KINDS
from tests.capture.typed_values import COLUMNS, LARGE, REFUSED
from tests.capture.wal.log import Log, bag

pytestmark = pytest.mark.postgres

Application = psycopg.Connection[tuple[object, ...]]
ROWS = 300

# For each column of COLUMNS an expression with a random value, in PostgreSQL's own words.
DIGITS = "round((random() * 1e19)::numeric * random()::numeric, (random() * 18)::integer)"
LETTERS = "left(translate(md5(random()::text), '0123456789', E'ä😀 ,\"\\\\{}\\n%'), (g % 12))"
MOMENT = "random() * 3652000 * interval '1 day'"
RANDOM = {
    "boolean": "random() < 0.5",
    "smallint": "(random() * 65535 - 32768)::integer",
    "integer": "(random() * 4294967295 - 2147483648)::bigint",
    "bigint": "((random() - 0.5) * 1.8e19)::bigint",
    "real": "((random() - 0.5) * 10 ^ (random() * 70 - 35))::real",
    "double precision": "(random() - 0.5) * 10 ^ (random() * 600 - 300)",
    "numeric": f"{DIGITS} * sign(random() - 0.5)::integer",
    "text": LETTERS,
    "character varying": f"left({LETTERS}, 5)",
    "character": f"left({LETTERS}, 5)",
    "bytea": "substr(decode(md5(random()::text), 'hex'), 1, g % 17)",
    "date": "'0001-01-01'::date + (random() * 3652058)::integer",
    "timestamp": f"'0001-01-01'::timestamp + {MOMENT}",
    "timestamptz": f"'0001-01-02 00:00:00+00'::timestamptz + {MOMENT}",
    "time": "time '00:00' + random() * interval '1 day'",
    "interval": (
        "make_interval(months => (random() * 99 - 50)::integer, days => g - 150,"
        " secs => round((random() * 1e5 - 5e4)::numeric, g % 7))"
    ),
    "uuid": "gen_random_uuid()",
    "enum": "(ARRAY['so so', 'it''s'])[1 + g % 2]::\"My Mood\"",
    "jsonb": f"jsonb_build_object({LETTERS}, jsonb_build_array(random(), NULL, {LETTERS}))",
    "array": ("(ARRAY[g, NULL, -g, (random() * 1e9)::integer])[1 : g % 5]"),
    "numerics": f"(ARRAY[{DIGITS}, NULL, {DIGITS}])[1 : g % 4]",
    "texts": f"(ARRAY[{LETTERS}, NULL, {LETTERS}, 'null'])[1 : g % 5]",
    "floats": "ARRAY[random()::real, 'Infinity', NULL]",
    "bytes": "ARRAY[decode(md5(random()::text), 'hex'), NULL, '']",
    "days": "ARRAY['2024-01-01'::date + g, NULL]",
    "moments": f"ARRAY['0001-01-02 00:00:00+00'::timestamptz + {MOMENT}, NULL]",
    "spans": "ARRAY[make_interval(secs => random() * g), NULL]",
    "moods": "ARRAY['it''s', NULL, 'so so']::\"My Mood\"[]",
    "documents": f"ARRAY[jsonb_build_array({LETTERS}, random())]",
}


def test_every_kind_is_here() -> None:
    assert set(RANDOM) == set(COLUMNS) >= {kind.name for kind in KINDS}


def test_values_of_every_kind(log: Log, application: Application) -> None:
    application.execute("CREATE TYPE \"My Mood\" AS ENUM ('so so', 'it''s')")
    declared = [f'"{name}" {declared}' for name, (declared, _) in COLUMNS.items()]
    application.execute(f"CREATE TABLE t (n serial, {', '.join(declared)})")
    application.execute("ALTER TABLE t REPLICA IDENTITY FULL")
    log.follow("t")
    names = [f'"{name}"' for name in COLUMNS]
    for n in range(max(len(values) for _, values in COLUMNS.values())):
        literals = [values[n][0] if n < len(values) else "NULL" for _, values in COLUMNS.values()]
        application.execute(f"INSERT INTO t ({', '.join(names)}) VALUES ({', '.join(literals)})")
    random = ", ".join(f"CASE WHEN random() < 0.9 THEN {RANDOM[name]} END" for name in COLUMNS)
    application.execute("SELECT setseed(0.5)")
    application.execute(
        f"INSERT INTO t ({', '.join(names)}) SELECT {random} FROM generate_series(1, {ROWS}) AS g"
    )
    table = log.table("t")
    live, changes = log.live(table), log.changes(table)
    assert changes["_weight"].to_pylist() == [1] * len(live)
    assert len(live) > ROWS
    assert changes.schema.remove(0) == live.schema
    for column in table.stored:
        expected = live.sort_by("c1")[column.physical].to_pylist()
        assert repr(changes[column.physical].to_pylist()) == repr(expected), column.name
    application.execute("UPDATE t SET n = n + 10000 WHERE n % 2 = 0")
    application.execute("DELETE FROM t WHERE n % 3 = 0")
    assert bag(log.changes(table)) == bag(log.live(table))
    relation = log.images("t")[0].relation
    with log.database.session() as connection:
        assert differences(relation, table.columns, type_names(connection, [relation])) == ()


def test_values_that_do_not_fit(log: Log, application: Application) -> None:
    declared = sorted({declared for declared, _, _ in REFUSED})
    columns = ", ".join(f'"a {name}" {name}' for name in declared)
    application.execute(f"CREATE TABLE t (id integer PRIMARY KEY, {columns})")
    log.follow("t")
    for number, (name, literal, _) in enumerate(REFUSED):
        application.execute(f'INSERT INTO t (id, "a {name}") VALUES ({number}, {literal})')
    table = log.table("t")
    (images,) = log.images("t")
    assert len(images) == len(REFUSED)
    for number, (name, _, shown) in enumerate(REFUSED):
        with pytest.raises(NeedsReinit) as refused:
            stored_images(images.where(images.position == images.position[number]), table)
        assert refused.value.code == "value-does-not-fit"
        assert f'column "a {name}" of public.t' in refused.value.message
        detail = f"The value is {shown}, in the row with id = {number}."
        assert refused.value.detail == detail


BOUNDARIES = {
    "date": ("0001-12-31 BC", "0001-01-01", "9999-12-31", "10000-01-01", "infinity"),
    "timestamp": (
        "0001-12-31 23:59:59.999999 BC",
        "0001-01-01 00:00:00",
        "9999-12-30 23:59:59.999999",
        "9999-12-31 00:00:00",
        "10000-01-01 00:00:00",
        "-infinity",
    ),
    "timestamptz": (
        "0001-12-31 23:59:59.999999+00 BC",
        "0001-01-01 00:00:00+00",
        "0001-01-01 23:59:59.999999+00",
        "0001-01-02 00:00:00+00",
        "9999-12-30 23:59:59.999999+00",
        "9999-12-31 00:00:00+00",
        "infinity",
    ),
    "numeric": (
        "99999999999999999999.999999999999999999",
        "-100000000000000000000",
        "100000000000000000000." + "0" * 30,
        "99999999999999999999." + "0" * 30,
        "0." + "0" * 18 + "1",
        "-0." + "0" * 17 + "1" + "0" * 30,
        "0." + "0" * 40 + "1",
        "NaN",
        "-Infinity",
    ),
    "integer[]": ("{}", "[1:2]={1,2}", "[0:0]={1}", "{{1}}", "{{}}", "{NULL}"),
    "text[]": ('{"{"}', '{"[0:0]={1}"}', "{{a},{b}}", '{"",NULL}'),
    "numeric(3,1)[]": ("{99.9}", "{99.9,NaN}", "{}"),
}


def test_the_log_refuses_what_postgresql_refuses(log: Log, application: Application) -> None:
    for declared in BOUNDARIES:
        application.execute(f'CREATE TABLE "{declared}" (id serial PRIMARY KEY, x {declared})')
    log.follow(*BOUNDARIES)
    for declared, texts in BOUNDARIES.items():
        for text in texts:
            application.execute(f'INSERT INTO "{declared}" (x) VALUES (%s::{declared})', [text])
    found = {images.relation.name: images for images in log.decoded().images}
    for declared in BOUNDARIES:
        table, images = log.table(declared), found[declared]
        query = read_sql(relation_sql("public", declared), table.stored, "true ORDER BY id")
        data = log.database.arrow(query)
        assert set(data["_misfit"].to_pylist()) == {True, False}
        for number, refused in enumerate(data["_misfit"].to_pylist()):
            one = images.where(images.position == images.position[number])
            if refused:
                with pytest.raises(NeedsReinit) as caught:
                    stored_images(one, table)
                assert caught.value.code == "value-does-not-fit"
            else:
                expected = to_stored(data.take([number]), table.stored).to_pylist()
                assert stored_images(one, table).drop_columns("_weight").to_pylist() == expected


def test_infinite_intervals(log: Log, application: Application) -> None:
    if application.info.server_version < 170000:
        pytest.skip("intervals are finite before version 17")
    application.execute("CREATE TABLE t (i interval)")
    log.follow("t")
    application.execute("INSERT INTO t VALUES ('-infinity')")
    with pytest.raises(NeedsReinit) as refused:
        log.changes(log.table("t"))
    assert "The value is -infinity" in (refused.value.detail or "")


@pytest.mark.parametrize("identity", ["FULL", "DEFAULT"])
def test_large_values(log: Log, application: Application, identity: str) -> None:
    """Over a megabyte; not sent again by an update of something else."""
    application.execute("CREATE TABLE t (n integer PRIMARY KEY, a text, b text, c bytea)")
    application.execute("ALTER TABLE t ALTER b SET STORAGE EXTERNAL")
    application.execute(f"ALTER TABLE t REPLICA IDENTITY {identity}")
    log.follow("t")
    row = (1, LARGE, LARGE + "x", LARGE.encode())
    application.execute("INSERT INTO t VALUES (%s, %s, %s, %s)", row)
    application.execute("UPDATE t SET n = 2")
    application.execute("UPDATE t SET a = NULL")
    table = log.table("t")
    images = {each.image: each for each in log.images("t")}
    if identity == "FULL":
        assert set(images) == {"old", "new"}
        assert not images["new"].unchanged
        assert bag(log.changes(table)) == bag(log.live(table))
        return
    assert set(images) == {"key", "new"}
    unchanged = {name: mask.tolist() for name, mask in images["new"].unchanged.items()}
    assert unchanged == {
        "a": [False, True, False],
        "b": [False, True, True],
        "c": [False, True, True],
    }
    assert stored_images(images["key"], table, table.columns[:1]).to_pylist() == [
        {"_weight": -1, "c1": 1}
    ]
    new = stored_images(images["new"], table)
    assert new["c1"].to_pylist() == [1, 2, 2]
    assert new["c4"].to_pylist() == [LARGE.encode(), None, None]
