"""The rows of a group as Spark's aggregates take them."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from headrace.functions.aggregates.zeros import spark_unsigned_zero
from headrace.functions.function import spark_function
from headrace.functions.spark import case, number
from headrace.types import Type

Expression = exp.Expression


@dataclass(frozen=True)
class GroupRows:
    """What an aggregate call sees of each row of its group.

    `arguments` are its arguments, of `types`; `only` says which rows count. `order` has, for each
    sort key, its expression, whether it descends and whether NULLs come first.
    """

    arguments: tuple[Expression, ...]
    types: tuple[Type, ...]
    needed: int = 1
    distinct: bool = False
    order: tuple[tuple[Expression, bool, bool], ...] = ()
    only: Expression | None = None

    @property
    def value(self) -> Expression:
        """The first argument."""
        return self.arguments[0].copy()

    def call(self, name: str, *values: Expression) -> Expression:
        """One of Spark's own aggregates over the rows, each of the equal ones once if asked for."""
        assert self.only is None
        if self.distinct:
            return spark_function(name, exp.Distinct(expressions=list(values)))
        return spark_function(name, *values)

    def array(self) -> Expression:
        """The rows as structs with fields a1, a2, … for the arguments, in their order."""
        present = [
            exp.Not(this=exp.Is(this=argument.copy(), expression=exp.Null()))
            for argument in self.arguments[: self.needed]
        ]
        kept = [*present, *([] if self.only is None else [self.only.copy()])]
        row: Expression = spark_function("named_struct", *self.fields())
        if kept:
            row = exp.Case(ifs=[exp.If(this=exp.and_(*kept), true=row)])
        rows = self.collected(row)
        return spark_function("array_sort", rows, self._comparator()) if self.order else rows

    def collected(self, row: Expression) -> Expression:
        """The list of the rows' structs. Neither of the two functions takes NULLs."""
        return spark_function("collect_set" if self.distinct else "collect_list", row)

    def fields(self) -> list[Expression]:
        fields: list[Expression] = []
        for place, (argument, type_) in enumerate(zip(self.arguments, self.types, strict=True), 1):
            value = (
                spark_unsigned_zero(argument.copy(), type_) if self.distinct else argument.copy()
            )
            fields += (exp.Literal.string(f"a{place}"), value)
        for place, (key, _, _) in enumerate(self.order, 1):
            if key not in self.arguments:
                fields += (exp.Literal.string(f"o{place}"), key.copy())
        return fields

    def _name(self, place: int, key: Expression) -> str:
        """The field that holds a sort key."""
        if key in self.arguments:
            return f"a{self.arguments.index(key) + 1}"
        return f"o{place}"

    def _comparator(self) -> Expression:
        result: Expression = number(0)
        for place, (key, descending, nulls_first) in reversed(list(enumerate(self.order, 1))):
            name = self._name(place, key)
            left, right = field("l", name), field("r", name)
            first, last = number(-1), number(1)
            result = case(
                exp.NullSafeEQ(this=left, expression=right),
                result,
                exp.Is(this=left.copy(), expression=exp.Null()),
                (first if nulls_first else last).copy(),
                exp.Is(this=right.copy(), expression=exp.Null()),
                (last if nulls_first else first).copy(),
                exp.LT(this=left.copy(), expression=right.copy()),
                (last if descending else first).copy(),
                (first if descending else last).copy(),
            )
        names = [exp.to_identifier(side) for side in ("l", "r")]
        return exp.Lambda(this=result, expressions=names)


def field(variable: str, name: str) -> Expression:
    """A field of the struct that a lambda's variable stands for."""
    return exp.Column(this=exp.to_identifier(name), table=exp.to_identifier(variable))


def folded(array: Expression, start: Expression, step: Expression) -> Expression:
    """`start`, replaced by `step` for each element; the two are called `total` and `x`."""
    names = [exp.to_identifier(name) for name in ("total", "x")]
    return spark_function("aggregate", array, start, exp.Lambda(this=step, expressions=names))
