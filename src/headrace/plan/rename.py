"""Plans equal up to what their columns are called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from headrace.plan.operators import Operator
from headrace.plan.scalar import Column

Part = TypeVar("Part")


def numbered(plan: Operator) -> tuple[Operator, tuple[Column, ...]]:
    """The plan with its columns named by when they first occur in it, and their own names.

    Two plans are equal up to the names of their columns if the first parts are equal.
    """
    found: dict[Column, Column] = {}
    _collect(plan, found)
    return renamed(plan, found), tuple(found)


def made_in(plan: Operator) -> tuple[Column, ...]:
    """The columns of the plan and of every operator in it, each once."""
    inside = (column for child in plan.children for column in made_in(child))
    return tuple(dict.fromkeys((*plan.columns, *inside)))


def renamed(part: Part, names: Mapping[Column, Column]) -> Part:
    """A plan, or a part of one, with columns replaced; those not in `names` stay."""
    return _renamed(part, names)  # type: ignore[no-any-return]


def _renamed(part: Any, names: Mapping[Column, Column]) -> Any:
    match part:
        case Column():
            return names.get(part, part)
        case tuple():
            return tuple(_renamed(each, names) for each in part)
        case _ if is_dataclass(part) and not isinstance(part, type):
            changed = {f.name: _renamed(getattr(part, f.name), names) for f in fields(part)}
            return replace(part, **changed)
        case _:
            return part


def _collect(part: Any, found: dict[Column, Column]) -> None:
    match part:
        case Column():
            found.setdefault(part, Column(f"x{len(found)}", part.type))
        case tuple():
            for each in part:
                _collect(each, found)
        case _ if is_dataclass(part) and not isinstance(part, type):
            for field in fields(part):
                _collect(getattr(part, field.name), found)
