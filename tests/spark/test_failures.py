"""Spark's failures by their SQLSTATE and condition."""

from __future__ import annotations

import pytest

from headrace.errors import HeadraceError, InternalError, NeedsReinit, Transient, UserError
from headrace.spark.failures import WorkerFailure, translate, translated
from headrace.spark.run import Input, Runner
from tests.spark.number_rows import NUMBERS, numbers


def test_a_failure_on_an_executor_names_its_error() -> None:
    text = f"Traceback ...\nWorkerFailure: {WorkerFailure('source-locked', 'it is <locked> now')}\n"
    error = translate(RuntimeError(text))
    assert isinstance(error, Transient)
    assert (error.code, error.message) == ("source-locked", "it is (locked> now")
    assert isinstance(translate(WorkerFailure("value-does-not-fit", "x")), NeedsReinit)
    assert isinstance(translate(WorkerFailure("no-such-code", "x")), InternalError)


def test_exceptions_that_are_not_sparks_pass() -> None:
    with pytest.raises(KeyError), translated():
        raise KeyError("a")
    with pytest.raises(UserError), translated():
        raise UserError("syntax-error", "b")


@pytest.mark.spark
@pytest.mark.parametrize("profile", ["tiny", "wide"])
@pytest.mark.parametrize(
    ("expression", "message", "state"),
    [
        ("n / (n - n)", "division by zero", "22012"),
        ("n + 9223372036854775807", "overflow", "22003"),
        ("CAST(CAST(n AS STRING) || 'x' AS INT)", "cannot be cast", "22018"),
        ("CAST(n * 1000000 AS DECIMAL(5,2))", "cannot be represented", "22003"),
        ("CAST(n * 10000000000 AS INT)", "overflow", "22003"),
        ("CAST(CAST(n AS STRING) || '-13-13' AS DATE)", "cannot be cast", "22018"),
    ],
)
def test_the_data_of_a_query_is_the_users(
    runner: Runner,
    capfd: pytest.CaptureFixture[str],
    profile: str,
    expression: str,
    message: str,
    state: str,
) -> None:
    with pytest.raises(UserError) as raised:
        runner.collect(
            f"SELECT {expression} AS x FROM a",
            [Input("a", NUMBERS, rows=numbers(1, 2))],
            profile=profile,  # type: ignore[arg-type]
        )
    assert raised.value.code == "query-failed"
    assert message in raised.value.message
    assert "spark.sql" not in raised.value.message
    assert state in (raised.value.detail or "")
    assert capfd.readouterr() == ("", "")


@pytest.mark.spark
def test_two_rows_of_a_scalar_subquery_are_the_users(runner: Runner) -> None:
    with pytest.raises(UserError) as raised:
        runner.collect("SELECT (SELECT n FROM a) AS x", [Input("a", NUMBERS, rows=numbers(1, 2))])
    assert raised.value.code == "query-failed"


@pytest.mark.spark
@pytest.mark.parametrize("sql", ["SELEC 1", "SELECT x FROM a", "SELECT * FROM nowhere"])
def test_a_query_that_spark_refuses_is_ours(runner: Runner, sql: str) -> None:
    with pytest.raises(HeadraceError) as raised:
        runner.collect(sql, [Input("a", NUMBERS, rows=numbers(1))])
    assert isinstance(raised.value, InternalError)
    assert "\n" not in (raised.value.detail or "")


@pytest.mark.spark
def test_a_job_that_fails_otherwise_may_be_tried_again(runner: Runner) -> None:
    with pytest.raises(Transient) as raised:
        runner.collect(
            "SELECT reflect('java.lang.Integer', 'parseInt', 'disk on fire') AS x FROM a",
            [
                Input("a", NUMBERS, rows=numbers(1)),
            ],
            profile="wide",
        )
    assert raised.value.code == "spark-failed"
    assert "disk on fire" in raised.value.message
    assert len(raised.value.message) < 600
