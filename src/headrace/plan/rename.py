"""Plans that are equal up to the names of their columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from operator import is_not
from typing import Any, TypeVar

from headrace.algebra.scalar import Column
from headrace.plan.operators import Operator, Scan
from headrace.types import Type

Part = TypeVar("Part")


def numbered(plan: Operator) -> tuple[Operator, tuple[Column, ...]]:
    """Return the plan with its columns named by when they first occur in it, and their own names.

    Two plans are equal up to the names of their columns if the first parts are equal.
    """
    new_columns: dict[Column, Column] = {}
    _collect(plan, new_columns)
    return renamed(plan, new_columns), tuple(new_columns)


def matching(one: Operator, other: Operator) -> dict[Column, Column] | None:
    """Return the names for the columns of `one` with which it equals `other`.

    Return None if the plans differ in more than names.
    """
    (first, names), (second, others) = numbered(one), numbered(other)
    return dict(zip(names, others, strict=True)) if first == second else None


def outline(plan: Operator) -> tuple[object, ...]:
    """Return a key that plans which are equal up to the names of their columns have in common.

    The key is cheap to compute; different plans may share one.
    """
    relation = plan.relation if isinstance(plan, Scan) else None
    return (type(plan), relation, len(plan.columns), *map(outline, plan.children))


def made_in(plan: Operator) -> tuple[Column, ...]:
    """Return the columns of the plan and of every operator in it, each once."""
    inside = (column for child in plan.children for column in made_in(child))
    return tuple(dict.fromkeys((*plan.columns, *inside)))


def renamed(part: Part, names: Mapping[Column, Column]) -> Part:
    """Return a plan, or a part of one, with columns replaced; those not in `names` stay."""
    return _renamed(part, names)  # type: ignore[no-any-return]


def _renamed(part: Any, names: Mapping[Column, Column]) -> Any:
    match part:
        case Column():
            return names.get(part, part)
        case tuple():
            renamed = tuple(_renamed(each, names) for each in part)
            return renamed if any(map(is_not, renamed, part)) else part
        case _:
            kind: Any = type(part)
            changed = {}
            for name in _parts(kind):
                before = getattr(part, name)
                after = _renamed(before, names)
                if after is not before:
                    changed[name] = after
            return replace(part, **changed) if changed else part


def _collect(part: Any, new_columns: dict[Column, Column]) -> None:
    match part:
        case Column():
            new_columns.setdefault(part, Column(f"x{len(new_columns)}", part.type))
        case tuple():
            for each in part:
                _collect(each, new_columns)
        case _:
            kind: Any = type(part)
            for name in _parts(kind):
                _collect(getattr(part, name), new_columns)


@cache
def _parts(kind: Any) -> tuple[str, ...]:
    """Return the fields of a class that may have columns in them."""
    if not is_dataclass(kind) or kind is Type:
        return ()
    return tuple(field.name for field in fields(kind))
