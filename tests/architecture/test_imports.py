"""Tests share code through helper modules: no module imports a test module or another conftest."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]


def imported_modules(tree: ast.AST) -> Iterator[str]:
    """Yield every module that is imported at any depth; a name from a package may be one, too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = node.module or ""
            yield package
            yield from (f"{package}.{alias.name}" for alias in node.names)


def is_private(module: str, folder: str) -> bool:
    """Say whether `module` is a test module, or the conftest of another folder than `folder`."""
    package, _, name = module.rpartition(".")
    if module.partition(".")[0] != "tests":
        return False
    return name.startswith("test_") or (name == "conftest" and package != folder)


def private_imports(root: Path) -> list[str]:
    """Return the imports below `root` of modules that only pytest may load."""
    return [
        f"{file.relative_to(root).as_posix()} imports {module}"
        for file in sorted(root.rglob("*.py"))
        for folder in [".".join((root.name, *file.relative_to(root).parent.parts))]
        for module in imported_modules(ast.parse(file.read_text(encoding="utf-8")))
        if is_private(module, folder)
    ]


def test_no_module_imports_a_test_module() -> None:
    assert private_imports(TESTS) == []


def test_private_imports_are_found(tmp_path: Path) -> None:
    root = tmp_path / "tests"
    (root / "store").mkdir(parents=True)
    (root / "store" / "test_log.py").write_text(
        "from tests.store import bounds, test_net\n"
        "from tests.store.conftest import bag\n"
        "from tests.store.test_lookup import watched\n\n\n"
        "def late() -> None:\n"
        "    import tests.test_doors\n"
        "    from tests.conftest import server\n"
    )
    assert private_imports(root) == [
        "store/test_log.py imports tests.store.test_net",
        "store/test_log.py imports tests.store.test_lookup",
        "store/test_log.py imports tests.test_doors",
        "store/test_log.py imports tests.conftest",
    ]
