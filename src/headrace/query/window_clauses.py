"""OVER and WINDOW: the clauses of a window with names resolved, and its frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from sqlglot import exp

from headrace.algebra.scalar import Literal
from headrace.functions import cast as cast_scalar
from headrace.functions.intervals import INTERVAL, parts_of
from headrace.functions.logic import lossless
from headrace.functions.numbers import own_digits
from headrace.plan.operators import WHOLE, Frame, FrameBound
from headrace.query.coerce import constant, folded, whole_number
from headrace.query.identifiers import name_of
from headrace.query.literals import Bound
from headrace.query.ordering import Sorted
from headrace.query.refusal import refuse, too_many_digits
from headrace.types import DOUBLE, Type


@dataclass(frozen=True)
class Clauses:
    """PARTITION BY, ORDER BY and the frame of a window, as they are written."""

    partition: tuple[exp.Expr, ...] = ()
    order: tuple[exp.Expr, ...] = ()
    frame: exp.Expr | None = None


def named_windows(select: exp.Select) -> dict[str, Clauses]:
    """Return the windows of the WINDOW clause; each may build on those before it."""
    named: dict[str, Clauses] = {}
    for node in select.args.get("windows") or ():
        name = name_of(node.this)
        if name in named:
            raise refuse("invalid-query", f'window "{name}" is already defined', node)
        named[name] = clauses_of(node, named)
    return named


def clauses_of(node: exp.Window, named: Mapping[str, Clauses]) -> Clauses:
    """Return the clauses of one window.

    A window that is built on a name may not repeat its clauses.
    """
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


_PLACES = {"unbounded preceding": 0, "preceding": 1, "current row": 2, "following": 3}
_PLACES["unbounded following"] = 4
_EXCLUSIONS = {"CURRENT ROW": "current row", "GROUP": "group", "TIES": "ties"}
Bind = Callable[[exp.Expr], Bound]


def frame_of(spec: exp.Expr | None, order: tuple[Sorted, ...], bind: Bind, node: exp.Expr) -> Frame:
    """Return the frame; without one it goes up to the last peer of the row."""
    if spec is None:
        start, end = FrameBound("unbounded preceding"), FrameBound("current row")
        return _simplest(Frame("range", start, end), order)
    mode = str(spec.args["kind"]).lower()
    if mode == "groups" and not order:
        raise refuse("invalid-query", "GROUPS mode requires an ORDER BY clause", node)
    start = _bound(spec, "start", mode, order, bind)
    end = FrameBound("current row")
    if spec.args.get("end") is not None:
        end = _bound(spec, "end", mode, order, bind)
    _check(start, end, node)
    excluded = spec.args.get("exclude")
    exclude = (
        "no others" if excluded is None else _EXCLUSIONS.get(excluded.name.upper(), "no others")
    )
    return _simplest(Frame(cast(Any, mode), start, end, cast(Any, exclude)), order)


def _simplest(frame: Frame, order: tuple[Sorted, ...]) -> Frame:
    """Return the whole partition where that is what the frame means."""
    if frame.exclude != "no others":
        return frame
    ends = {frame.start.kind, frame.end.kind}
    if ends == {"unbounded preceding", "unbounded following"}:
        return WHOLE
    return WHOLE if frame.mode == "range" and not order else frame


def _check(start: FrameBound, end: FrameBound, node: exp.Expr) -> None:
    if start.kind == "unbounded following":
        raise refuse("invalid-query", "frame start cannot be UNBOUNDED FOLLOWING", node)
    if end.kind == "unbounded preceding":
        raise refuse("invalid-query", "frame end cannot be UNBOUNDED PRECEDING", node)
    if _PLACES[start.kind] > _PLACES[end.kind]:
        row = "current row" if start.kind == "current row" else "following row"
        message = f"frame starting from {row} cannot have preceding rows"
        raise refuse("invalid-query", message, node)


def _bound(
    spec: exp.Expr, name: str, mode: str, order: tuple[Sorted, ...], bind: Bind
) -> FrameBound:
    value, side = spec.args[name], str(spec.args.get(f"{name}_side") or "").lower()
    if isinstance(value, str):
        word = value.lower()
        return FrameBound(cast(Any, f"unbounded {side}" if word == "unbounded" else "current row"))
    return FrameBound(cast(Any, side), _offset(value, mode, order, bind))


def _offset(value: exp.Expr, mode: str, order: tuple[Sorted, ...], bind: Bind) -> Literal:
    offset_label = f"an offset of {mode.upper()}"
    if mode != "range":
        number = whole_number(bind(value), offset_label, value)
        if number is None or number < 0:
            raise refuse("invalid-query", f"{offset_label} must not be null or negative", value)
        return Literal(number, Type("bigint"))
    if len(order) != 1:
        message = "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column"
        raise refuse("invalid-query", message, value)
    key = order[0].scalar.type
    offset = _distance(constant(bind(value), offset_label, value, _distance_type(key)), key, value)
    if offset.value is None or _is_negative(offset):
        raise refuse("invalid-query", f"{offset_label} must not be null or negative", value)
    return offset


def _distance_type(key: Type) -> Type:
    """Return the type that a bare constant is read as."""
    return key if key.is_number else INTERVAL


def _distance(offset: Literal, key: Type, node: exp.Expr) -> Literal:
    """Return the offset in a type that is a distance of keys."""
    if key.is_integer and offset.type.is_integer:
        return offset
    if key.is_float and offset.type.is_number:
        float_offset = folded(cast_scalar(offset, DOUBLE))
        assert float_offset is not None
        return float_offset
    if key.kind == "numeric" and (offset.type.is_integer or offset.type.kind == "numeric"):
        if not lossless([key, own_digits(offset)]):
            raise too_many_digits("RANGE", [key, offset.type], node)
        return offset
    if key.is_moment and offset.type.kind == "interval":
        _require_one_unit(offset, node)
        return offset
    message = f"RANGE over {key.sql} with an offset of {offset.type.sql} is not maintained"
    raise refuse("unsupported-query", message, node)


def _require_one_unit(offset: Literal, node: exp.Expr) -> None:
    """Refuse months, which have no fixed length, and days together: Spark has no such interval."""
    assert isinstance(offset.value, str)
    parts = parts_of(offset.value)
    if parts.months and (parts.days or parts.micros):
        message = "a RANGE offset of months and days together is not maintained"
        raise refuse("unsupported-query", message, node)


def _is_negative(offset: Literal) -> bool:
    if offset.type.kind == "interval":
        assert isinstance(offset.value, str)
        parts = parts_of(offset.value)
        return min(parts.months, parts.days, parts.micros) < 0
    assert offset.value is not None and not isinstance(offset.value, (str, bytes))
    return bool(cast(Any, offset.value) < 0)
