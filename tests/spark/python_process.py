"""Python processes that start a Spark of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import headrace

# PySpark leaves the pipe of a JVM that did not start.
WARNINGS = ("-W", "error", "-W", "ignore:PySpark does not yet", "-W", "ignore::ResourceWarning")
SOURCES = Path(headrace.__file__).parent.parent


def python(text: str, folder: Path, **environment: str) -> subprocess.Popen[str]:
    """A Python process of its own in an empty folder: a Spark application cannot be had twice."""
    script = folder.parent / f"{folder.name}.py"
    script.write_text(textwrap.dedent(text))
    return subprocess.Popen(
        [sys.executable, *WARNINGS, str(script)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SOURCES), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
