"""The layers of the package, as data: what each is for, who may import whom and which library.

A package imports packages of lower layers only, never one of its own layer. `imports` reads the
source code; a test compares it with the rules, and ARCHITECTURE.md is drawn from it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2] / "src" / "headrace"


@dataclass(frozen=True)
class Layer:
    """Packages at one height, and what they have in common."""

    purpose: str
    packages: tuple[str, ...]


# From the ground up.
LAYERS = (
    Layer("errors with codes", ("errors",)),
    Layer("arguments and errors at the boundary; files of this machine", ("boundary", "files")),
    Layer("PostgreSQL's types; project settings", ("types", "settings")),
    Layer("what scalars, window calls and operators are", ("algebra",)),
    Layer("every function: its meaning, its Spark form, its evaluation", ("functions",)),
    Layer("operators, passes, stages, and an evaluator of plans", ("plan",)),
    Layer("subqueries lowered; deltas; Spark SQL", ("lower", "delta", "render")),
    Layer("PostgreSQL's SQL, parsed and bound to a plan", ("query",)),
    Layer("one outside system each", ("source", "store", "embedded")),
    Layer("the other outside system: sessions, prepared plans, copies", ("spark",)),
    Layer("triggers, buffers, WAL: what is written into a source database", ("capture",)),
    Layer("records, catalog tables, migrations, the writer lease", ("catalog",)),
    Layer("dependencies, cycles, strata, diamonds", ("graph",)),
    Layer("when and what is due: a function of the time. Pure", ("schedule",)),
    Layer("the wiring of an open project, and its durable steps", ("engine",)),
    Layer("relations as queries read and write them", ("relations",)),
    Layer("a cut becomes an epoch; results become visible", ("ingest", "publish")),
    Layer("planning and performing a refresh", ("refresh",)),
    Layer("Headrace's own statements and options", ("statements",)),
    Layer("create, alter, drop, rebuild, repair", ("lifecycle",)),
    Layer("proofs; folders of definitions", ("verify", "project")),
    Layer("status, lag, health; writes nothing", ("observe",)),
    Layer("commands as data", ("commands",)),
    Layer("threads that keep everything fresh", ("daemon",)),
    Layer("what users import", ("api",)),
    Layer("a small shop to try it on", ("demo",)),
    Layer("the command line", ("cli",)),
)
# Modules that are only ways in: `import headrace`, `python -m headrace`.
WAYS_IN = frozenset({"__init__", "__main__"})

# Libraries that talk to the outside, and the packages that may. Others may name a library's types
# in signatures, under TYPE_CHECKING.
LIBRARIES: Mapping[str, frozenset[str]] = {
    "pyspark": frozenset({"spark"}),
    "py4j": frozenset({"spark"}),
    "deltalake": frozenset({"store"}),
    "adbc_driver_manager": frozenset({"source"}),
    "adbc_driver_postgresql": frozenset({"source"}),
    "psycopg": frozenset(
        {"source", "capture", "catalog", "ingest", "publish", "lifecycle", "verify", "daemon"}
        | {"cli", "demo"}
    ),
    "sqlglot": frozenset({"functions", "query", "render", "verify"}),
    "pydantic": frozenset({"settings"}),
    "typer": frozenset({"cli"}),
    "rich": frozenset({"cli"}),
    "cronsim": frozenset({"schedule"}),
}


@dataclass(frozen=True)
class Import:
    """One import: the package and module that it stands in, and the module that it names."""

    package: str
    place: str
    module: str
    only_types: bool

    @property
    def library(self) -> str:
        return self.module.partition(".")[0]

    @property
    def target(self) -> str | None:
        """The package of ours that is imported, if it is one."""
        names = self.module.split(".")
        return names[1] if names[0] == "headrace" and len(names) > 1 else None


@cache
def imports(root: Path = ROOT) -> tuple[Import, ...]:
    """Return every import of the source code, also those inside functions."""
    return tuple(_imports(root))


def _imports(root: Path) -> Iterator[Import]:
    for path in sorted(root.rglob("*.py")):
        inside = path.relative_to(root)
        package = inside.parts[0].removesuffix(".py")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        types = frozenset(_under_type_checking(tree))
        for node in ast.walk(tree):
            for module in _named(node):
                yield Import(package, f"{inside}:{node.lineno}", module, node in types)  # type: ignore[attr-defined]


def package_graph(root: Path = ROOT) -> dict[str, frozenset[str]]:
    """Return for each package those that it imports."""
    graph: dict[str, set[str]] = {}
    for found in imports(root):
        if found.package in WAYS_IN:
            continue
        targets = graph.setdefault(found.package, set())
        if found.target is not None and found.target != found.package:
            targets.add(found.target)
    return {package: frozenset(targets) for package, targets in graph.items()}


def height(package: str) -> int | None:
    """Return the number of the layer that a package is in, from the ground; None if in none."""
    return next((n for n, layer in enumerate(LAYERS) if package in layer.packages), None)


def picture(graph: Mapping[str, frozenset[str]]) -> str:
    """Return the packages as a Mermaid diagram, without arrows that others imply."""
    lines = ["```mermaid", "graph TD"]
    for package in sorted(graph, key=lambda one: (-(height(one) or 0), one)):
        lines += [f"  {package} --> {target}" for target in sorted(_direct(graph, package))]
    return "\n".join((*lines, "```"))


def layers_table() -> str:
    """Return the layers as a Markdown table, the highest first."""
    rows = [
        f"| {', '.join(f'`{package}`' for package in layer.packages)} | {layer.purpose} |"
        for layer in reversed(LAYERS)
    ]
    return "\n".join(("| packages | what they are for |", "|---|---|", *rows))


def architecture_blocks() -> dict[str, str]:
    """Return the generated blocks of ARCHITECTURE.md."""
    return {"layers": layers_table(), "packages": picture(package_graph())}


def _named(node: ast.AST) -> tuple[str, ...]:
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports name their modules in full"
        assert node.module is not None
        if node.module == "headrace":
            return tuple(f"headrace.{alias.name}" for alias in node.names)
        return (node.module,)
    return tuple(alias.name for alias in node.names) if isinstance(node, ast.Import) else ()


def _under_type_checking(tree: ast.Module) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            for statement in node.body:
                yield from ast.walk(statement)


def _direct(graph: Mapping[str, frozenset[str]], package: str) -> frozenset[str]:
    """Return what a package imports and reaches in no other way."""
    targets = graph.get(package, frozenset())
    return targets - frozenset(_reached(graph, targets))


def _reached(graph: Mapping[str, frozenset[str]], starts: Iterable[str]) -> set[str]:
    """Return what is reached from packages in one step or more."""
    reached: set[str] = set()
    waiting = list(starts)
    while waiting:
        for target in graph.get(waiting.pop(), frozenset()) - reached:
            reached.add(target)
            waiting.append(target)
    return reached
