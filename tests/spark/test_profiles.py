"""What is pinned is in force in every session of ours, and a user's session stays as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from headrace.spark.profiles import PROFILES, Profile, settings_of
from headrace.spark.run import Input, Runner
from headrace.spark.session import Spark
from tests.spark.values import logged, stored

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_an_unknown_profile_is_refused() -> None:
    with pytest.raises(ValueError, match="huge"):
        settings_of("huge")  # type: ignore[arg-type]


@pytest.mark.spark
@pytest.mark.parametrize("profile", PROFILES)
def test_every_setting_is_in_force(ours: Spark, profile: Profile) -> None:
    session = ours.profile(profile)
    found = {key: session.conf.get(key) for key in settings_of(profile)}
    assert found == settings_of(profile)


@pytest.mark.spark
def test_a_users_session_is_not_changed(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.session.timeZone", "Europe/Vienna")
    try:
        with Spark.open(spark) as opened:
            assert opened.profile("wide").conf.get("spark.sql.session.timeZone") == "UTC"
            assert opened.profile("wide") is opened.profile("wide")
            assert opened.new_session("wide") is not opened.profile("wide")
        assert spark.conf.get("spark.sql.session.timeZone") == "Europe/Vienna"
        assert spark.range(3).count() == 3
    finally:
        spark.conf.unset("spark.sql.session.timeZone")


@pytest.mark.spark
def test_a_tiny_plan_is_one_stage_of_shared_operators(runner: Runner, tmp_path: Path) -> None:
    """Files and rows, joined and unioned and grouped, and the rows are not a part of the plan."""
    table = logged(pa.table({"k": pa.array([1, 2, 2], pa.int64())}))
    files = (stored(table, tmp_path / "1.parquet"), stored(table, tmp_path / "2.parquet"))
    schema = pa.schema([("_weight", pa.int64()), ("k", pa.int64())])
    inputs = [Input("a", schema, files=files, rows=table), Input("b", schema, rows=table)]
    sql = (
        "SELECT k, SUM(w) AS w FROM (SELECT /*+ COALESCE(1) */ * FROM ("
        "SELECT a.k, a._weight * b._weight AS w FROM a JOIN b ON a.k = b.k"
        " UNION ALL SELECT k, _weight FROM b)) GROUP BY k"
    )
    before = runner.jobs
    result = runner.collect(sql, inputs)
    assert isinstance(result, pa.Table)
    assert dict(zip(*result.to_pydict().values(), strict=True)) == {1: 4, 2: 14}
    assert runner.jobs - before == 1
    plan = runner.collect(f"EXPLAIN {sql}", inputs)
    assert isinstance(plan, pa.Table)
    text = plan.column(0)[0].as_py()
    assert "Exchange" not in text
    assert "LocalTableScan" not in text
    assert "*(" not in text, "code is generated for a whole stage"


@pytest.mark.spark
@pytest.mark.parametrize("profile", PROFILES)
def test_expressions_over_few_rows_of_one_task_are_interpreted(
    runner: Runner, profile: Profile, tmp_path: Path
) -> None:
    schema = pa.schema([("n", pa.int64())])

    def mode(*inputs: Input) -> tuple[str | None, int]:
        def asked(session: SparkSession) -> tuple[str | None, int]:
            text = "SELECT SUM(CASE WHEN n % 2 = 0 THEN n ELSE -n END) AS n FROM a"
            result = session.sql(text).toArrow().to_pydict()["n"][0]
            return session.conf.get("spark.sql.codegen.factoryMode"), result

        return runner.call(profile, inputs, asked)

    few, many = (pa.table([range(rows)], schema=schema) for rows in (4, 20_000))
    file = stored(logged(few), tmp_path / "1.parquet")
    interpreted = "NO_CODEGEN" if profile == "tiny" else "FALLBACK"
    for _ in range(2):
        assert mode(Input("a", schema, rows=few)) == (interpreted, -2)
        assert mode(Input("a", schema, rows=many)) == ("FALLBACK", -10_000)
        assert mode(Input("a", schema, files=(file,))) == ("FALLBACK", -2)
