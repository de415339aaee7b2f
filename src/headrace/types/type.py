"""A PostgreSQL type with its parameters, as a value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import pyarrow as pa

from headrace.types.kind import Comparison, Kind
from headrace.types.kinds import (
    KIND_BY_NAME,
    KIND_BY_OID,
    MAXIMUM_DIGITS,
    NOT_A_NUMBER,
    PRINTED,
    PRINTED_ARRAY,
)

Rounding = Literal["quotient", "product"]


@dataclass(frozen=True)
class Type:
    """One of `KINDS` with its parameters.

    For numeric, precision and scale are those of the stored decimal; `declared` says whether they
    are also the column's own typmod (served as numeric(p,s)) or only how a numeric without
    one is stored. `rounded` marks a number that is right to `scale` digits and no further: the
    result of a division or AVG, or of a product that needs more than 38 digits. `room` is how many
    digits before the point the columns and constants of the query can make a value have: all of a
    declared column, and fewer than the type has where it allows for many rows, as that of a sum.
    `ordered` is false for text whose collation is not C. `folds` is true for text under C itself,
    where upper and lower are known to change ASCII letters only. `element` is the type of an
    array's elements.

    `unsized` marks a bpchar, which has no length of its own. With a `length`, all its values are
    padded to that, and stored without padding as those of char(n) are. Without one, they are stored
    with the blanks that they have, and do not compare as they are.
    """

    kind: str
    precision: int | None = None
    scale: int | None = None
    length: int | None = None
    enum: str | None = None
    declared: bool = False
    rounded: Rounding | None = None
    room: int = 0
    ordered: bool = True
    folds: bool = False
    unsized: bool = False
    element: Type | None = None

    def __post_init__(self) -> None:
        if self.kind not in KIND_BY_NAME:
            raise ValueError(f"unknown kind of type: {self.kind!r}")
        if self.kind == "numeric":
            precision, scale = self.precision, self.scale
            if precision is None or scale is None:
                raise ValueError("numeric needs precision and scale")
            if not 0 < precision <= MAXIMUM_DIGITS or not 0 <= scale <= precision:
                raise ValueError(f"numeric({precision},{scale}) cannot be stored")
            if self.declared:
                object.__setattr__(self, "room", precision - scale)
        if (self.kind == "array") != (self.element is not None):
            raise ValueError("an array, and nothing else, has a type of its elements")
        if self.element is not None and not has_arrays(self.element):
            raise ValueError(f"an array of {self.element.kind} cannot be stored")

    @property
    def row(self) -> Kind:
        """The row of `KINDS` that this type belongs to."""
        return KIND_BY_NAME[self.kind]

    @property
    def sql(self) -> str:
        """The PostgreSQL type of a served column."""
        return self.row.sql(self)

    @property
    def arrow(self) -> pa.DataType:
        return self.row.arrow(self)

    @property
    def spark(self) -> str:
        return self.row.spark(self)

    @property
    def comparison(self) -> Comparison:
        """Which comparisons agree in both engines: all, equality only, or none."""
        if self.keeps_blanks:
            return "none"
        if self.element is not None and self.element.comparison == "none":
            return "none"
        if not self.ordered and self.row.comparison == "ordered":
            return "equality"
        return self.row.comparison

    @property
    def read(self) -> str:
        """The SQL template that reads a column of this type as it is stored."""
        if self.keeps_blanks:
            return "textin(bpcharout({column}))"
        if self.element is not None and self.element.kind == "enum":
            return PRINTED_ARRAY
        if self.element is not None:
            return self.element.read.replace("::text", "::text[]")
        return self.row.read

    @property
    def as_text(self) -> str:
        """The SQL template of a value as text; no cast that a user has defined takes part."""
        return PRINTED if self.is_of_users else "{column}::text"

    @property
    def is_of_users(self) -> bool:
        """Whether the type, or that of an array's elements, is one that a user has made."""
        return (self.element or self).kind == "enum"

    @property
    def misfit(self) -> str | None:
        """The SQL template of a condition that is true where a value cannot be stored."""
        if self.element is not None:
            return _misfit_of_array(self.row, self.element.misfit)
        if self.kind != "numeric" or self.row.misfit is None:
            return self.row.misfit
        assert self.precision is not None and self.scale is not None
        return self.row.misfit.replace(
            "{integer_digits}", str(self.precision - self.scale)
        ).replace("{scale}", str(self.scale))

    @property
    def column_misfit(self) -> str | None:
        """`misfit` over a column that PostgreSQL itself declares with this type.

        It keeps the digits of a numeric(p,s), and checking them again takes as long as reading.
        """
        if self.element is not None:
            return _misfit_of_array(self.row, self.element.column_misfit)
        return NOT_A_NUMBER if self.kind == "numeric" and self.declared else self.misfit

    @property
    def bare(self) -> Type:
        """The type without digits or length of its own, an array's elements likewise."""
        element = None if self.element is None else self.element.bare
        return replace(self, declared=False, length=None, element=element)

    @property
    def is_rounded_product(self) -> bool:
        """Whether digits of a product were cut, so that values may seem equal that are not."""
        return (self.element or self).rounded == "product"

    @property
    def is_integer(self) -> bool:
        return self.row.family == "integer"

    @property
    def is_float(self) -> bool:
        return self.row.family == "float"

    @property
    def is_number(self) -> bool:
        return self.is_integer or self.is_float or self.kind == "numeric"

    @property
    def is_text(self) -> bool:
        return self.row.family == "text"

    @property
    def is_moment(self) -> bool:
        """Whether values are points in time: dates and timestamps."""
        return self.row.family == "moment"

    @property
    def keeps_blanks(self) -> bool:
        """Whether values are stored with trailing blanks that do not count in comparisons."""
        return self.unsized and self.length is None

    @property
    def without_length(self) -> Type:
        """The type that aggregates and window functions give to a value that they pass on."""
        if self.kind == "character" and self.length is not None:
            return replace(self, unsized=True)
        return self.bare

    def to_json(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults; `from_json` gives the type back."""
        defaults = {name: field.default for name, field in Type.__dataclass_fields__.items()}
        if self.declared:
            defaults["room"] = self.room
        fields = {
            name: value
            for name, value in vars(self).items()
            if name == "kind" or value != defaults[name]
        }
        return fields if self.element is None else {**fields, "element": self.element.to_json()}

    @staticmethod
    def from_json(fields: dict[str, Any]) -> Type:
        element = fields.get("element")
        if element is None:
            return Type(**fields)
        return Type(**{**fields, "element": Type.from_json(element)})


def _misfit_of_array(row: Kind, element: str | None) -> str | None:
    if element is None:
        return row.misfit
    element_misfit = element.replace("{column}", "element")
    inside = f"EXISTS (SELECT FROM unnest({{column}}) AS elements (element) WHERE {element_misfit})"
    return f"({row.misfit} OR {inside})"


def array_of(element: Type) -> Type:
    """Return the type of an array; its elements must be of a type that `has_arrays`."""
    return Type("array", element=element)


def has_arrays(element: Type) -> bool:
    """Return whether arrays of the type are stored."""
    # Trailing blanks of char(n) do not count, which array operators do not implement.
    return element.row.in_arrays


# Digits after the point of a numeric column without typmod; 20 are left before it.
NUMERIC_SCALE = 18

BOOLEAN = Type("boolean")
INTEGER = Type("integer")
BIGINT = Type("bigint")
DOUBLE = Type("double precision")
TEXT = Type("text")


def numeric(precision: int, scale: int) -> Type:
    """Return the type of a column declared numeric(precision, scale)."""
    return Type("numeric", precision=precision, scale=scale, declared=True)


def result_numeric(
    precision: int, scale: int, *, rounded: Rounding | None = None, room: int = MAXIMUM_DIGITS
) -> Type:
    """Return the type of a computed numeric, bounded to 38 digits.

    Without `room`, all digits before the point may be in use.
    """
    scale = min(scale, MAXIMUM_DIGITS)
    precision = max(min(precision, MAXIMUM_DIGITS), scale, 1)
    room = min(room, precision - scale)
    return Type("numeric", precision=precision, scale=scale, rounded=rounded, room=room)


def plain_numeric(scale: int = NUMERIC_SCALE) -> Type:
    """Return the type of a numeric column without typmod.

    Its values seldom need the digits before the point.
    """
    return result_numeric(MAXIMUM_DIGITS, scale, room=0)


def from_postgres(
    oid: int,
    typmod: int,
    *,
    enum: str | None = None,
    ordered: bool = True,
    folds: bool = False,
    element: int | None = None,
) -> Type | None:
    """Return the type of a PostgreSQL column, or None if it has no exact counterpart.

    `oid` is the base type's (domains resolved by the caller), `typmod` pg_attribute.atttypmod. Of
    an array, `element` is the oid of its elements' type, which all other arguments describe.
    """
    if element is not None:
        element_type = from_postgres(element, typmod, enum=enum, ordered=ordered, folds=folds)
        return (
            array_of(element_type)
            if element_type is not None and has_arrays(element_type)
            else None
        )
    if enum is not None:
        return Type("enum", enum=enum)
    kind = KIND_BY_OID.get(oid)
    if kind is None:
        return None
    match kind.name:
        case "numeric":
            return _numeric_from_typmod(typmod)
        case "character varying":
            length = typmod - 4 if typmod > 4 else None
            return Type(kind.name, length=length, ordered=ordered, folds=folds)
        case "character":
            # bpchar without a length keeps trailing blanks that it does not compare.
            if typmod <= 4:
                return None
            return Type(kind.name, length=typmod - 4, ordered=ordered, folds=folds)
        case "text":
            return Type(kind.name, ordered=ordered, folds=folds)
        case _:
            return Type(kind.name)


def _numeric_from_typmod(typmod: int) -> Type | None:
    if typmod < 4:
        return plain_numeric()
    precision, scale = (typmod - 4) >> 16 & 0xFFFF, (typmod - 4) & 0x7FF
    if scale >= 1024 or scale > precision:  # negative scale, or a scale beyond the precision
        return None
    if precision > MAXIMUM_DIGITS:
        return plain_numeric(scale) if scale <= MAXIMUM_DIGITS else None
    return numeric(precision, scale)
