"""The inputs of a plan, which the caller registers under their names."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.plan.operators import Operator, Scan, Version


@dataclass(frozen=True)
class PlanInput:
    """A relation's change or state under the view name that the rendered SQL uses.

    `columns` are the physical columns read. The name says nothing about epochs, so that the text
    of a stage's query is the same every time.
    """

    relation: str
    version: Version
    columns: tuple[str, ...]

    @property
    def name(self) -> str:
        return input_name(self.relation, self.version)


def input_name(relation: str, version: Version) -> str:
    return f"{relation}_{version}"


def inputs_of(plan: Operator) -> tuple[PlanInput, ...]:
    """Return every input of the plan once, with all columns that any of its scans reads."""
    columns: dict[tuple[str, Version], dict[str, None]] = {}

    def visit(node: Operator) -> None:
        if isinstance(node, Scan):
            read = columns.setdefault((node.relation, node.version), {})
            read.update(dict.fromkeys(physical for physical, _ in node.fields))
        for child in node.children:
            visit(child)

    visit(plan)
    return tuple(
        PlanInput(relation, version, tuple(sorted(read)))
        for (relation, version), read in columns.items()
    )
