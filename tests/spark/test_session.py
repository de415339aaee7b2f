"""Where Spark comes from: nothing before the first use, nothing left behind, nothing to see."""

from __future__ import annotations

import signal
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headrace.errors import Unavailable, UserError
from headrace.spark.session import Spark
from tests.spark.python_process import python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "empty"
    made.mkdir()
    return made


def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def test_opening_starts_nothing(folder: Path) -> None:
    process = python(
        """
        import sys
        import headrace, headrace.spark.run, headrace.spark.copy
        from headrace.spark.session import Spark
        for where in (None, "local[2]", "spark://nowhere:1", "sc://nowhere:1"):
            with Spark.open(where) as spark:
                assert not spark.started
        assert not {"pyspark", "py4j"} & set(sys.modules)
        """,
        folder,
    )
    assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == 0


@pytest.mark.parametrize("scheme", ["sc", "spark"])
def test_an_address_that_does_not_answer_is_named_without_its_token(scheme: str) -> None:
    address = f"{scheme}://127.0.0.1:{closed_port()}"
    began = time.monotonic()
    address += "/;token=geheim" * (scheme == "sc")
    with Spark.open(address) as spark, pytest.raises(Unavailable) as raised:
        spark.profile("tiny")
    assert raised.value.code == "spark-unreachable"
    assert "127.0.0.1" in str(raised.value)
    assert "geheim" not in str(raised.value)
    assert time.monotonic() - began < 10


def test_an_address_of_another_kind_is_refused() -> None:
    with pytest.raises(UserError) as raised:
        Spark.open("postgresql://me:geheim@here")
    assert raised.value.code == "invalid-option"
    assert "geheim" not in str(raised.value)


def test_what_is_no_session_is_refused() -> None:
    with Spark.open(17) as spark, pytest.raises(UserError) as raised:  # type: ignore[arg-type]
        spark.profile("tiny")
    assert raised.value.code == "invalid-option"


@pytest.mark.spark
def test_a_second_master_in_one_process_is_refused(spark: SparkSession) -> None:
    with Spark.open("local[7]") as opened, pytest.raises(UserError) as raised:
        opened.profile("tiny")
    assert raised.value.code == "invalid-option"
    assert spark.range(2).count() == 2


@pytest.mark.spark
def test_an_application_that_runs_already_is_used_and_left(spark: SparkSession) -> None:
    with Spark.open() as opened:
        same = opened.profile("tiny").sparkContext.applicationId
    assert same == spark.sparkContext.applicationId
    assert spark.range(2).count() == 2


@pytest.mark.spark
def test_a_local_spark_is_quiet_and_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    """Two holders share one application; it stops with the last; Java's words go to the log.

    A user's options for the JVM are left as they are.
    """
    process = python(
        """
        import os, signal, sys
        from pathlib import Path
        from headrace.spark.launch import process_folder
        from headrace.spark.run import Runner
        from headrace.spark.session import Spark

        handler = signal.getsignal(signal.SIGINT)
        one = Spark.open(log=Path(sys.argv[0]).parent / "log" / "spark.log")
        two = Spark.open("local[*]")
        session = one.profile("tiny")
        context = session.sparkContext
        assert two.profile("tiny").sparkContext.applicationId == context.applicationId
        one.close()
        assert two.profile("wide").range(5).count() == 5
        runner = Runner(two)
        assert runner.collect("SELECT 1 AS x", []).to_pydict() == {"x": [1]}
        assert context.getConf().get("spark.driver.bindAddress") == "127.0.0.1"
        assert context.getConf().get("spark.driver.memory") == "2g"
        assert context.uiWebUrl is None
        machine = context._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()
        options = [one for one in machine.getInputArguments() if "ReservedCodeCache" in one]
        assert options == ["-XX:ReservedCodeCacheSize=300m"]
        two.close()
        two.close()
        assert runner.jobs == 0
        assert signal.getsignal(signal.SIGINT) is handler
        assert "SPARK_CONF_DIR" not in os.environ
        with Spark.open("local[1]") as again:
            assert again.profile("tiny").range(3).count() == 3
        Path("folder").write_text(str(process_folder()))
        """,
        folder,
        SPARK_SUBMIT_OPTS="-XX:ReservedCodeCacheSize=300m",
    )
    assert process.communicate(timeout=180) == ("", "")
    assert process.returncode == 0
    left = Path((folder / "folder").read_text())
    assert [path.name for path in folder.iterdir()] == ["folder"]
    assert not left.exists()
    assert (tmp_path / "log" / "spark.log").stat().st_size > 0


@pytest.mark.spark
def test_the_jvm_keeps_the_code_that_it_compiled(spark: SparkSession) -> None:
    machine = spark.sparkContext._jvm.java.lang.management.ManagementFactory  # type: ignore[union-attr]
    assert "-XX:ReservedCodeCacheSize=1g" in machine.getRuntimeMXBean().getInputArguments()


@pytest.mark.spark
def test_ctrl_c_ends_the_waiting_and_the_job(folder: Path) -> None:
    process = python(
        """
        import sys
        from headrace.spark.run import Runner
        from headrace.spark.session import Spark

        spark = Spark.open("local[1]")
        runner = Runner(spark)
        slow = "SELECT SUM(a.id * b.id % 7) FROM range(1000000) a CROSS JOIN range(1000000) b"
        runner.collect("SELECT 1", [])
        print("ready", flush=True)
        try:
            runner.collect(slow, [])
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        print(runner.collect("SELECT 2 AS x", []).to_pydict(), flush=True)
        spark.close()
        """,
        folder,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    rest, errors = process.communicate(timeout=60)
    assert (rest, errors) == ("interrupted\n{'x': [2]}\n", "")
    assert time.monotonic() - began < 30


@pytest.mark.spark
def test_a_java_that_cannot_start_is_reported(folder: Path, tmp_path: Path) -> None:
    """The program answers `-version` and then fails, as with too little memory."""
    java = tmp_path / "java-home" / "bin" / "java"
    java.parent.mkdir(parents=True)
    version = "echo 'openjdk version \"17.0.1\"' >&2"
    java.write_text(f'#!/bin/sh\n[ "$1" = -version ] && {version} && exit 0\nexit 1\n')
    java.chmod(0o755)
    process = python(
        """
        from headrace.errors import HeadraceError
        from headrace.spark.session import Spark
        try:
            Spark.open().profile("tiny")
        except HeadraceError as error:
            print(error.code, type(error).__name__)
        """,
        folder,
        JAVA_HOME=str(java.parent.parent),
    )
    assert process.communicate(timeout=60) == ("spark-failed Transient\n", "")
