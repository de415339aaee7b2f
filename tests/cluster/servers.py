"""Spark servers of a test's own, on loopback: a standalone cluster and Spark Connect."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
LOOPBACK = "127.0.0.1"
WAIT_SECONDS = 120


@contextmanager
def standalone(folder: Path, workers: int = 2) -> Iterator[str]:
    """A master and its workers, each a process of one core; gives the master's address."""
    port = free_port()
    with ExitStack() as stack:
        address = f"spark://{LOOPBACK}:{port}"
        web = str(free_port())
        stack.enter_context(
            _running(
                folder / "master",
                "spark-class",
                [MASTER, "--host", LOOPBACK, "--port", str(port), "--webui-port", web],
            )
        )
        wait_for(port)
        for number in range(workers):
            home = folder / f"worker{number}"
            options = ["--host", LOOPBACK, "--webui-port", str(free_port()), "--cores", "1"]
            options += ["--memory", "1g", "--work-dir", str(home), address]
            stack.enter_context(_running(home, "spark-class", [WORKER, *options]))
        yield address


@contextmanager
def connect(folder: Path, environment: Mapping[str, str] | None = None) -> Iterator[str]:
    """A Spark Connect server over a local Spark of its own; gives its address."""
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    chosen = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    command = ["--master", "local[2]", "--class", CONNECT, *chosen, "spark-internal"]
    with _running(folder, "spark-submit", command, environment):
        wait_for(port)
        yield f"sc://{LOOPBACK}:{port}"


@contextmanager
def _running(
    folder: Path, program: str, words: list[str], environment: Mapping[str, str] | None = None
) -> Iterator[None]:
    """A program of Spark's that runs meanwhile, in a folder that keeps its log."""
    import pyspark

    folder.mkdir(parents=True, exist_ok=True)
    binary = Path(pyspark.__file__).parent / "bin" / program
    with (folder / "server.log").open("w") as log:
        process = subprocess.Popen(
            [str(binary), *words],
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            cwd=folder,
            env={
                **os.environ,
                "PYSPARK_PYTHON": sys.executable,
                "SPARK_LOCAL_IP": LOOPBACK,
                **(environment or {}),
            },
        )
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


def free_port() -> int:
    with socket.socket() as free:
        free.bind((LOOPBACK, 0))
        port: int = free.getsockname()[1]
        return port


def wait_for(port: int) -> None:
    """Return once somebody listens there."""
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        try:
            socket.create_connection((LOOPBACK, port), 1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise TimeoutError(f"nobody listens on port {port}")
