"""Start a Spark application in this process, quietly and with nothing left behind.

A Python process has at most one JVM and at most one Spark application. Who asks for one gets the
one that runs; it is stopped when the last who asked has let go, and never if a user started it.
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

# The variables would turn a session asked for here into another one.
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
# What planning takes of compiled code is more than a JVM keeps by itself: it would throw code away
# and compile it again all the time, on a core of its own. The memory is only taken as it is used.
_JVM_OPTIONS = "-XX:ReservedCodeCacheSize=1g"
# The driver listens for executors and for readers of blocks, also where there are none, and takes
# Java objects from whoever connects. The secret is made in the JVM and told to nobody.
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
    """The application of this process, started on `master` if none runs; `release` it after use."""
    with _lock:
        session = start(master or LOCAL, memory=memory, log=log)
        context = session.sparkContext
        if master is not None and context.master != master:
            raise UserError(
                "invalid-option",
                f"Spark runs on {context.master} in this process, not on {master}",
                hint="A process has one Spark application. Use that one, or another process.",
            )
        mark = context.getConf().get(MARK, "") or ""
        if mark not in _holders:
            return Application(session, "", process_of_jvm())
        _holders[mark] += 1
        return Application(session, mark, process_of_jvm())


def release(application: Application) -> None:
    """Stop the application if it is ours and nobody else holds it."""
    with _lock:
        if application.mark not in _holders:
            return
        _holders[application.mark] -= 1
        if _holders[application.mark] == 0:
            del _holders[application.mark]
            application.session.stop()


def abandon(application: Application) -> None:
    """Let go of an application whose JVM is dead, for all who hold it."""
    with _lock:
        if application.mark in _holders:
            _forget()


def _forget() -> None:
    """Forget the JVM, which is dead; who held an application of it does not hold the next one."""
    _holders.clear()
    forget_jvm()


def start(
    master: str, *, memory: str = "2g", log: Path | None = None, counted: bool = True
) -> SparkSession:
    """A classic session; with `counted` false the caller stops it by `session.stop()`."""
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
            # Asked by its context, an application that runs already is left as it is.
            SparkContext.getOrCreate(SparkConf().setAll(list(settings.items())))
            session: SparkSession = SparkSession.builder.getOrCreate()
        except Exception as error:
            detail = translate(error).message
            if not jvm_answers():
                _forget()
            raise Transient(
                "spark-failed", "Spark did not start", detail=detail, hint=f"The log is {log}."
            ) from error
        if counted and session.sparkContext.getConf().get(MARK) == mark:
            _holders[mark] = 0
        return session


def _settings(memory: str) -> dict[str, str]:
    # The UI would listen on every interface without a password. 100 generated classes, Spark's
    # default, are soon used up by many stream tables. Of 1,000 queries it would keep the plans as
    # text, for a page that nobody sees.
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
    """The folder that Python workers import this package from."""
    return Path(__file__).resolve().parents[2]


@cache
def process_folder() -> Path:
    """What Spark drops in this process: a folder that goes with the process, as the JVM does."""
    folder, _ = lasting_folder(JVM)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "conf").mkdir()
    (folder / "tmp").mkdir()
    for name, text in zip(_OUR_FILES, (_LOG4J, _SPARK_ENV), strict=True):
        (folder / "conf" / name).write_text(text)
    return folder


@contextmanager
def _environment(log: Path, local: bool) -> Iterator[None]:
    """The variables that the JVM and its Python workers start with, for the time of the start."""
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
    """The user's options for the JVM, and ours unless these are about the same."""
    given = [os.environ.get(name, "") for name in _USERS_OPTIONS]
    ours = []
    if not any(word in text for text in given for word in ("CodeCacheSize", "CodeHeapSize")):
        ours.append(_JVM_OPTIONS)
    if local and not any("java.io.tmpdir" in text for text in given):
        # Libraries unpack native code there, which a JVM that is killed leaves behind.
        ours.append(f'"-Djava.io.tmpdir={process_folder() / "tmp"}"')
    return " ".join((*ours, given[0])).strip() or None


def _link_configuration() -> str | None:
    """Put the user's configuration beside ours: it says how to use a cluster; local needs none."""
    home = os.environ.get("SPARK_HOME")
    given = os.environ.get("SPARK_CONF_DIR") or (f"{home}/conf" if home else None)
    if given is None or not Path(given).is_dir():
        return None
    for file in Path(given).iterdir():
        link = process_folder() / "conf" / file.name
        if file.name not in _OUR_FILES and not link.exists():
            link.symlink_to(file.resolve())
    return given


def _set(variables: dict[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
