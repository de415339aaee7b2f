"""The generator's files of a scale, made once where a folder is given to keep them in."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path


def generate(folder: Path, scale: str) -> None:
    """The generator's files in a folder."""
    program = shutil.which("tpchgen-cli", path=str(Path(sys.executable).parent)) or "tpchgen-cli"
    subprocess.run([program, "csv", "--quiet", "-s", scale, f"--output-dir={folder}"], check=True)


def generated(folder: Path, scale: str) -> Path:
    """The folder with the files of a scale, below a folder that may have them already."""
    wanted = folder / f"scale-{scale}"
    if not wanted.exists():
        unfinished = folder / f"scale-{scale}.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        generate(unfinished, scale)
        unfinished.rename(wanted)
    return wanted
