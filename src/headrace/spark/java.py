"""Find the Java that Spark will run on, before Spark fails without it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from headrace.errors import Unavailable

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
    """The major version in what `java -version` says, or None if it says none.

    "1.8.0_392" -> 8    "11.0.2" -> 11    "17.0.15" -> 17    "21" -> 21    "25-ea" -> 25
    """
    found = VERSION.search(text)
    if found is None:
        return None
    first = int(found["first"])
    # Up to Java 8 the version numbers began with "1.".
    return int(found["second"]) if first == 1 and found["second"] else first


def find_java(environment: Mapping[str, str]) -> Path | None:
    """The Java program that Spark's start script picks: that of JAVA_HOME, else the one on PATH."""
    home = environment.get("JAVA_HOME")
    if home:
        program = Path(home) / "bin" / "java"
        return program if os.access(program, os.X_OK) else None
    found = shutil.which("java", path=environment.get("PATH"))
    return Path(found) if found else None


def require_java(environment: Mapping[str, str] | None = None) -> JavaInstallation:
    """The installed Java; raises `Unavailable` with code `java-missing` if none is new enough."""
    environment = os.environ if environment is None else environment
    program = find_java(environment)
    if program is None:
        home = environment.get("JAVA_HOME")
        detail = f"JAVA_HOME is {home}, but there is no bin/java in it." if home else None
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
