"""Aggregate calls of a query block, and expressions rewritten over its groups."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from headrace.functions import AGGREGATE_BY_NAME, call
from headrace.plan.operators import AggregateCall
from headrace.plan.scalar import Call, Column, Literal, Scalar, walk
from headrace.query.ids import ColumnIds
from headrace.query.refusal import refuse
from headrace.query.scope import Scope
from headrace.types import BIGINT


def is_quotient(scalar: Scalar, quotients: frozenset[Column] = frozenset()) -> bool:
    """Whether a numeric comes from a division: here, or in one of the columns named."""
    return scalar.type.rounded and any(
        (isinstance(node, Call) and node.function == "/") or node in quotients
        for node in walk(scalar)
    )


class Aggregates:
    """Collects the aggregate calls of one block; equal calls are computed once."""

    def __init__(self, ids: ColumnIds) -> None:
        self._ids = ids
        self._columns: dict[tuple[str, Scalar | None], Column] = {}

    @staticmethod
    def knows(name: str) -> bool:
        return name in AGGREGATE_BY_NAME

    def call(
        self, node: exp.Expr, name: str, argument: Scalar | None, only: Scalar | None
    ) -> Column:
        """The column that will hold the call's result. `only` is its FILTER."""
        if argument is None and name != "count":
            raise refuse("invalid-query", f"{name}(*) does not exist", node)
        if only is not None:
            # An aggregate skips NULLs, so a row that the filter drops becomes one.
            kept: Scalar = Literal(1, BIGINT) if argument is None else argument
            argument = call("case", only, kept, Literal(None, kept.type))
        type_ = AGGREGATE_BY_NAME[name].type_of(None if argument is None else argument.type)
        if type_ is None:
            assert argument is not None
            if name in ("min", "max") and argument.type.is_text and not argument.type.ordered:
                raise refuse(
                    "text-order",
                    f"{name} on text needs collation C",
                    node,
                    'Write COLLATE "C" after the text, or declare the column so.',
                )
            message = f"{name}({argument.type.sql}) is not maintained"
            raise refuse("unsupported-function", message, node)
        key = (name, argument)
        if key not in self._columns:
            self._columns[key] = self._ids.computed(name, type_)
        return self._columns[key]

    def count_rows(self) -> None:
        """COUNT(*), for a block that groups and computes nothing else."""
        self._columns.setdefault(("count", None), self._ids.computed("count", BIGINT))

    @property
    def arguments(self) -> tuple[Scalar, ...]:
        """What is aggregated, each once."""
        arguments = (argument for _, argument in self._columns)
        return tuple(dict.fromkeys(a for a in arguments if a is not None))

    @property
    def outputs(self) -> frozenset[Column]:
        return frozenset(self._columns.values())

    def quotients(self, below: frozenset[Column]) -> frozenset[Column]:
        """The results that come from a numeric division: here, or in one of the columns below."""
        return frozenset(
            column
            for (name, argument), column in self._columns.items()
            if name == "avg" or (argument is not None and is_quotient(argument, below))
        )

    def calls(self, columns: dict[Scalar, Column]) -> tuple[AggregateCall, ...]:
        """The calls over the columns that hold their arguments."""
        return tuple(
            AggregateCall(output, name, None if argument is None else columns[argument])
            for (name, argument), output in self._columns.items()
        )

    def __bool__(self) -> bool:
        return bool(self._columns)


class Groups:
    """The keys of a grouped block: what they stand for, and which column holds each.

    A column that is not a key itself is allowed where the keys contain a key of its table: all
    rows of a group then agree on it, and it becomes one more key.
    """

    def __init__(
        self, keys: dict[Scalar, Column], aggregates: frozenset[Column], scope: Scope
    ) -> None:
        self.keys = dict(keys)
        self._aggregates = aggregates
        self._scope = scope

    def over(self, scalar: Scalar, node: exp.Expr) -> Scalar:
        """An expression over rows, said over groups: keys and aggregate results."""
        key = self.keys.get(scalar)
        if key is not None:
            return key
        match scalar:
            case Column():
                if scalar in self._aggregates:
                    return scalar
                if self._depends(scalar):
                    self.keys[scalar] = scalar
                    return scalar
                raise refuse(
                    "invalid-query",
                    f'column "{self._scope.label(scalar)}" must appear in GROUP BY'
                    " or be used in an aggregate function",
                    node,
                )
            case Call(arguments=arguments):
                return replace(scalar, arguments=tuple(self.over(a, node) for a in arguments))
            case Literal():
                return scalar

    def _depends(self, column: Column) -> bool:
        for source in self._scope.sources:
            if any(visible.scalar == column for visible in source.columns):
                return any(all(part in self.keys for part in key) for key in source.keys)
        return False
