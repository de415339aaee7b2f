"""The Java that Spark runs on: found before the start, and forgotten after the JVM has died."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from typing import TYPE_CHECKING

from headrace.errors import Unavailable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLDEST_MAJOR = 17

HINT = (
    f"Spark needs Java {OLDEST_MAJOR} or newer. "
    "Debian or Ubuntu: apt install openjdk-17-jre-headless. "
    "Fedora: dnf install java-17-openjdk-headless. macOS: brew install openjdk@17. "
    "If it is installed already, set JAVA_HOME to its folder."
)

VERSION = re.compile(r'version "(?P<first>\d+)(?:\.(?P<second>\d+))?[^"]*"')


@dataclass(frozen=True)
class JavaInstallation:
    """A Java program that is new enough for Spark."""

    path: Path
    major: int


def parse_major(text: str) -> int | None:
    """Return the major version in the output of `java -version`; None without one.

    "1.8.0_392" -> 8    "11.0.2" -> 11    "17.0.15" -> 17    "21" -> 21    "25-ea" -> 25
    """
    match = VERSION.search(text)
    if match is None:
        return None
    first = int(match["first"])
    # Up to Java 8 the version numbers began with "1.".
    return int(match["second"]) if first == 1 and match["second"] else first


def find_java(environment: Mapping[str, str]) -> Path | None:
    """Return the Java program of Spark's start script: that of JAVA_HOME, else the one on PATH."""
    home = environment.get("JAVA_HOME")
    if home:
        program = Path(home) / "bin" / "java"
        return program if os.access(program, os.X_OK) else None
    on_path = shutil.which("java", path=environment.get("PATH"))
    return Path(on_path) if on_path else None


def require_java(environment: Mapping[str, str] | None = None) -> JavaInstallation:
    """Return the installed Java; raise `java-missing` if none is new enough."""
    environment = os.environ if environment is None else environment
    program = find_java(environment)
    if program is None:
        home = environment.get("JAVA_HOME")
        detail = f"JAVA_HOME is {home}, which has no bin/java." if home else None
        raise Unavailable("java-missing", "no Java was found", detail=detail, hint=HINT)
    output = _version_text(program)
    major = parse_major(output)
    if major is None:
        raise Unavailable(
            "java-missing", f"{program} is not a working Java", detail=output or None, hint=HINT
        )
    if major < OLDEST_MAJOR:
        raise Unavailable(
            "java-missing", f"Java {major} is too old", detail=f"It is {program}.", hint=HINT
        )
    return JavaInstallation(program, major)


def _version_text(program: Path) -> str:
    try:
        done = subprocess.run(
            [str(program), "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    return (done.stderr + done.stdout).strip()


def answers(session: SparkSession) -> bool:
    """Return whether the application or server of a session still answers."""
    try:
        session.conf.get("spark.sql.ansi.enabled")
        if hasattr(session, "_jsparkSession"):
            # A context that failed stops by itself; its JVM still runs and answers.
            return not session.sparkContext._jsc.sc().isStopped()  # noqa: SLF001
    except Exception:  # noqa: BLE001  it may fail in any way that a broken connection can
        return False
    return True


def process_of_jvm() -> Popen[bytes] | None:
    """Return the process of the JVM that PySpark started last; None without one."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway  # noqa: SLF001
    # `getattr` of a missing attribute would call the JVM.
    return None if gateway is None else vars(gateway).get("proc")


def jvm_answers() -> bool:
    """Return whether PySpark has a JVM that answers."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway  # noqa: SLF001
    if gateway is None:
        return False
    try:
        gateway.jvm.java.lang.System.nanoTime()
    except Exception:  # noqa: BLE001  it may fail in any way that a broken connection can
        return False
    return True


def forget_jvm() -> None:
    """Make PySpark forget the JVM of this process, which is dead or unusable.

    PySpark starts one JVM in the life of a process and keeps it in private fields, without a way
    to release it. A JVM that still runs ends when its input is closed.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    gateway = SparkContext._gateway  # noqa: SLF001
    if gateway is not None:
        process = process_of_jvm()
        with suppress(Exception):
            gateway.shutdown()
        if process is not None and process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()
    context = SparkContext._active_spark_context  # noqa: SLF001
    # Its thread and socket would otherwise stay until this process ends.
    server = getattr(context, "_accumulatorServer", None)
    if server is not None:
        with suppress(Exception):
            server.shutdown()
    SparkContext._gateway = None  # noqa: SLF001
    SparkContext._jvm = None  # noqa: SLF001
    SparkContext._active_spark_context = None  # noqa: SLF001
    SparkSession._instantiatedSession = None  # noqa: SLF001
    SparkSession._activeSession = None  # noqa: SLF001
