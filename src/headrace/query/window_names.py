"""OVER and WINDOW: a window's clauses, with the names that it builds on resolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from headrace.query.identifiers import name_of
from headrace.query.refusal import refuse


@dataclass(frozen=True)
class Clauses:
    """PARTITION BY, ORDER BY and the frame of a window, as they are written."""

    partition: tuple[exp.Expr, ...] = ()
    order: tuple[exp.Expr, ...] = ()
    frame: exp.Expr | None = None


def named_windows(select: exp.Select) -> dict[str, Clauses]:
    """The windows of the WINDOW clause; each may build on those before it."""
    named: dict[str, Clauses] = {}
    for node in select.args.get("windows") or ():
        name = name_of(node.this)
        if name in named:
            raise refuse("invalid-query", f'window "{name}" is already defined', node)
        named[name] = clauses_of(node, named)
    return named


def clauses_of(node: exp.Window, named: Mapping[str, Clauses]) -> Clauses:
    """The clauses of one window; one that is built on a name may not say again what that says."""
    order = node.args.get("order")
    own = Clauses(
        tuple(node.args.get("partition_by") or ()),
        () if order is None else tuple(order.expressions),
        node.args.get("spec"),
    )
    alias = node.args.get("alias")
    if alias is None:
        return own
    name = name_of(alias)
    if name not in named:
        raise refuse("invalid-query", f'window "{name}" does not exist', node)
    base = named[name]
    if own == Clauses():
        return base
    if own.partition:
        message = f'cannot override PARTITION BY clause of window "{name}"'
        raise refuse("invalid-query", message, node)
    if own.order and base.order:
        message = f'cannot override ORDER BY clause of window "{name}"'
        raise refuse("invalid-query", message, node)
    if base.frame is not None:
        message = f'cannot copy window "{name}" because it has a frame clause'
        raise refuse("invalid-query", message, node)
    return replace(own, partition=base.partition, order=own.order or base.order)
