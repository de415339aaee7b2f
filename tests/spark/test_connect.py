"""The same calls over Spark Connect, against a server of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import servers
from tests.spark.python_process import python

pytestmark = [pytest.mark.spark, pytest.mark.e2e]

SCRIPT = """
import json, os, sys, threading, time
from pathlib import Path
sys.path.insert(0, os.environ["ROOT"])
from headrace.errors import HeadraceError
from headrace.spark.run import Input, Runner, TooLarge
from headrace.spark.session import Spark
from tests.spark.values import bag, logged, read_back, special_table, stored

found = {}
table = special_table()
file = stored(logged(table), Path("a.parquet").resolve())

def code(sql, *inputs):
    try:
        runner.collect(sql, inputs)
    except HeadraceError as error:
        return error.code

with Spark.open(os.environ["ADDRESS"]) as spark:
    runner = Runner(spark)
    result = runner.collect("SELECT * FROM `a view`", [Input("a view", table.schema, rows=table)])
    found["types"] = result.schema.equals(table.schema) and bag(result) == bag(table)
    both = Input("a view", table.schema, files=(file,), rows=logged(table))
    result = runner.collect("SELECT * FROM `a view`", [both], limit=100)
    found["files"] = bag(result) == sorted(2 * bag(table))
    found["large"] = runner.collect("SELECT * FROM `a view`", [both], limit=3) == TooLarge(3)
    epoch = "CAST(4 AS BIGINT) AS _epoch, CAST(1 AS BIGINT) AS _weight"
    stored = [Input("a view", table.schema, files=(file,))]
    runner.write(f"SELECT {epoch}, * FROM `a view`", stored, str(Path("parts").resolve()))
    found["written"] = bag(read_back(Path("parts"))) == bag(logged(table, 4))
    found["jobs"] = runner.jobs
    found["zero"] = code("SELECT id / (id - id) FROM range(3)")
    found["refused"] = code("SELECT x")
    found["file"] = code("SELECT * FROM a", Input("a", table.schema, files=("/no/file",)))
    slow = "SELECT SUM(a.id * b.id % 7) FROM range(1000000) a CROSS JOIN range(1000000) b"
    waiting = threading.Thread(target=lambda: found.update(cancelled=code(slow)))
    waiting.start()
    time.sleep(2)
    runner.cancel()
    waiting.join(20)

    from pyspark.sql import SparkSession
    mine = SparkSession.builder.remote(os.environ["ADDRESS"]).create()
    with Spark.open(mine) as opened:
        found["given"] = Runner(opened).collect("SELECT 1 AS x", []).to_pydict()
    found["kept"] = mine.range(3).count()
print(json.dumps(found))
"""


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """A Spark Connect server on a free port of this machine."""
    with servers.connect(tmp_path) as where:
        yield where


def test_the_same_calls_work_over_spark_connect(address: str, tmp_path: Path) -> None:
    folder = tmp_path / "client"
    folder.mkdir()
    root = str(Path(__file__).parents[2])
    output, errors = python(SCRIPT, folder, ADDRESS=address, ROOT=root).communicate(timeout=300)
    assert errors == ""
    assert json.loads(output) == {
        "types": True,
        "files": True,
        "large": True,
        "written": True,
        "jobs": 4,
        "zero": "query-failed",
        "refused": "invariant",
        "file": "store-unreachable",
        "cancelled": "spark-failed",
        "given": {"x": [1]},
        "kept": 3,
    }
