"""Every allowed cast with values to try it on."""

from __future__ import annotations

from decimal import Decimal

from headrace.functions.casts import castable
from headrace.types import TEXT, Type, numeric
from tests.functions.cases import CHARACTER, VALUES, VARCHAR, Cases

_TARGETS: tuple[Type, ...] = (
    *VALUES,
    numeric(4, 1),
    numeric(20, 15),
    Type("character varying"),
    Type("character varying", length=2),
    Type("character", length=2),
)
_MORE: dict[str, tuple[object, ...]] = {
    "numeric": (Decimal("0.05"), Decimal("2.50"), Decimal("-2.50"), Decimal("9.96")),
    "double precision": (2.5, 3.5, -2.5, 32767.5, 2147483647.4, 1e10, 9.3e18, -9.2233720e18),
    "real": (2.5, 3.5, 32768.0),
    "text": ("true", "12", "abc   ", "é€😀"),
}


def _cases(source: Type) -> Cases:
    more = tuple((value,) for value in _MORE.get(source.kind, ()))
    if source.kind == "numeric" and source.scale is not None and source.scale < 2:
        more = ()
    return Cases((source,), (*((value,) for value in VALUES[source]), *more))  # type: ignore[arg-type]


CASTS: tuple[tuple[Type, Cases], ...] = tuple(
    (target, _cases(source))
    for source in VALUES
    for target in _TARGETS
    # What text is read as is tried by expressions, on texts that can be read.
    if source != target and castable(source, target) and source.is_text <= target.is_text
)
assert {TEXT, VARCHAR, CHARACTER} <= {target for target, _ in CASTS}
