"""Starting a Spark application in this process, without console output and leftover files.

A Python process has at most one JVM and at most one Spark application. `acquire` returns the
running application if there is one; the last `release` stops it, unless a user started it.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING

from headrace.errors import Transient, UserError
from headrace.files.private import current_umask, private_file, private_folder
from headrace.files.temporary import JVM, lasting_folder
from headrace.spark.failures import translate, translated
from headrace.spark.jvm import forget_jvm, jvm_answers, process_of_jvm, require_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "local[*]"
MARK = "spark.headrace.application"

# These variables would change the kind of session that is started here.
_FOREIGN = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_API_MODE", "PYSPARK_SUBMIT_ARGS")

_LOG4J = """\
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{yyyy-MM-dd HH:mm:ss.SSS} %p %c{1}: %m%n%ex
"""

# Sourced by Spark's start script: from here on the JVM's stderr is the log file.
_SPARK_ENV = """\
exec 2>>"$HEADRACE_SPARK_LOG"
if [ -f "$HEADRACE_SPARK_CONF/spark-env.sh" ]; then . "$HEADRACE_SPARK_CONF/spark-env.sh"; fi
"""
# Planning needs more compiled code than a JVM keeps by default: it would discard and recompile code
# all the time, on a core of its own. The memory is reserved and used on demand.
_JVM_OPTIONS = "-XX:ReservedCodeCacheSize=1g"
# The driver listens for executors and readers of blocks, even in local mode, and deserialises Java
# objects from any client. The secret is generated in the JVM and never leaves it.
_CLOSED_PORTS = {
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.saslFallback": "false",
}
_USERS_OPTIONS = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")
_OUR_FILES = ("log4j2.properties", "spark-env.sh")

_lock = RLock()
_holders: dict[str, int] = {}


@dataclass(frozen=True)
class Application:
    """A running application: `mark` is empty if a user started it.

    `process` is its JVM, None if that is not a child of this process.
    """

    session: SparkSession
    mark: str
    process: subprocess.Popen[bytes] | None


def acquire(master: str | None, *, memory: str, log: Path | None) -> Application:
    """Return the application of this process, started if need be; `release` it after use."""
    with _lock:
        session = start(master or LOCAL, memory=memory, log=log)
        context = session.sparkContext
        if master is not None and context.master != master:
            raise UserError(
                "invalid-option",
                f"Spark already runs on {context.master} in this process, not on {master}",
                hint="A process has one Spark application. Use that one, or start another process.",
            )
        mark = context.getConf().get(MARK, "") or ""
        if mark not in _holders:
            return Application(session, "", process_of_jvm())
        _holders[mark] += 1
        return Application(session, mark, process_of_jvm())


def release(application: Application) -> None:
    """Stop the application if we started it and nobody else holds it."""
    with _lock:
        if application.mark not in _holders:
            return
        _holders[application.mark] -= 1
        if _holders[application.mark] == 0:
            del _holders[application.mark]
            application.session.stop()


def abandon(application: Application) -> None:
    """Forget an application whose JVM is dead, for all its holders."""
    with _lock:
        if application.mark in _holders:
            _forget()


def _forget() -> None:
    """Forget a dead JVM; holders of its application do not hold the next one."""
    _holders.clear()
    forget_jvm()


def start(
    master: str, *, memory: str = "2g", log: Path | None = None, counted: bool = True
) -> SparkSession:
    """Return a classic session; with `counted` false the caller stops it by `session.stop()`."""
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    mark = uuid.uuid4().hex
    # Not local-cluster[…], whose executors are processes of their own, as a cluster's are.
    local = master.partition("[")[0] == "local"
    settings = {**_settings(memory), **(_local_settings() if local else {})}
    settings |= {"spark.master": master, MARK: mark}
    log = log or process_folder() / "spark.log"
    private_folder(log.parent)
    os.close(private_file(log, os.O_CREAT | os.O_WRONLY))
    with _lock, _environment(log, local), translated():
        require_java()
        process = process_of_jvm()
        if process is not None and process.poll() is not None:
            _forget()
        try:
            # Through its context, a running application is not reconfigured.
            SparkContext.getOrCreate(SparkConf().setAll(list(settings.items())))
            session: SparkSession = SparkSession.builder.getOrCreate()
        except Exception as error:
            detail = translate(error).message
            if not jvm_answers():
                _forget()
            raise Transient(
                "spark-failed",
                "could not start Spark",
                detail=detail,
                hint=f"See the log file {log}.",
            ) from error
        if counted and session.sparkContext.getConf().get(MARK) == mark:
            _holders[mark] = 0
        return session


def _settings(memory: str) -> dict[str, str]:
    # The UI would listen on every interface without a password. Many stream tables soon use up 100
    # generated classes, Spark's default. The UI would also keep the plans of 1,000 queries as text.
    return {
        "spark.app.name": "headrace",
        "spark.ui.enabled": "false",
        "spark.driver.memory": memory,
        "spark.ui.showConsoleProgress": "false",
        "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|conninfo",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.codegen.cache.maxEntries": "2000",
        "spark.sql.ui.retainedExecutions": "20",
        "spark.executorEnv.PYTHONPATH": str(_package_folder()),
    }


def _local_settings() -> dict[str, str]:
    folder = process_folder()
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        **_CLOSED_PORTS,
        "spark.hadoop.fs.permissions.umask-mode": f"{current_umask() | 0o022:03o}",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
    }


def _package_folder() -> Path:
    """Return the folder from which Python workers import this package."""
    return Path(__file__).resolve().parents[2]


@cache
def process_folder() -> Path:
    """Return the folder for Spark's files of this process, removed when the process ends."""
    folder, _ = lasting_folder(JVM)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "conf").mkdir()
    (folder / "tmp").mkdir()
    for name, text in zip(_OUR_FILES, (_LOG4J, _SPARK_ENV), strict=True):
        (folder / "conf" / name).write_text(text)
    return folder


@contextmanager
def _environment(log: Path, local: bool) -> Iterator[None]:
    """Set the environment variables of the JVM and its Python workers during the start."""
    users = None if local else _link_configuration()
    changed: dict[str, str | None] = {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_CONF_DIR": str(process_folder() / "conf"),
        "HEADRACE_SPARK_LOG": str(log),
        "HEADRACE_SPARK_CONF": users,
        "SPARK_SUBMIT_OPTS": _jvm_options(local),
        **dict.fromkeys(_FOREIGN),
    }
    before = {name: os.environ.get(name) for name in changed}
    _set(changed)
    try:
        yield
    finally:
        _set(before)


def _jvm_options(local: bool) -> str | None:
    """Return the user's options for the JVM, and ours unless the user set the same."""
    users_options = [os.environ.get(name, "") for name in _USERS_OPTIONS]
    options = []
    if not any(
        word in text for text in users_options for word in ("CodeCacheSize", "CodeHeapSize")
    ):
        options.append(_JVM_OPTIONS)
    if local and not any("java.io.tmpdir" in text for text in users_options):
        # Libraries unpack native code there, which a killed JVM leaves behind.
        options.append(f'"-Djava.io.tmpdir={process_folder() / "tmp"}"')
    return " ".join((*options, users_options[0])).strip() or None


def _link_configuration() -> str | None:
    """Link the user's configuration beside ours, for clusters; return its folder, if any."""
    home = os.environ.get("SPARK_HOME")
    folder = os.environ.get("SPARK_CONF_DIR") or (f"{home}/conf" if home else None)
    if folder is None or not Path(folder).is_dir():
        return None
    for file in Path(folder).iterdir():
        link = process_folder() / "conf" / file.name
        if file.name not in _OUR_FILES and not link.exists():
            link.symlink_to(file.resolve())
    return folder


def _set(variables: dict[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
