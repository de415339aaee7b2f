"""Project folders written for a test."""

from __future__ import annotations

from pathlib import Path


def write(folder: Path, **files: str) -> Path:
    """The folder with these *.sql files, and no others, in it; two underscores go deeper."""
    for file in folder.rglob("*.sql"):
        file.unlink()
    for name, text in files.items():
        file = folder / (name.replace("__", "/") + ".sql")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder


def create(name: str, query: str, options: str = "") -> str:
    return f"CREATE STREAM TABLE {name}{f' WITH ({options})' if options else ''} AS\n{query};\n"
