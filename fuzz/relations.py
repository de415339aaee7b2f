"""The relational trees that random queries are written from.

Every relation has `columns`, the names that an operator above it may use. Names are unique in a
view, so a condition means the same wherever it stands and a column of an outer query needs no
mark. `operator` is the name under which pairs of operators are counted; None is seen through.
`items` are what the operator adds to the coverage.
"""

from __future__ import annotations

from dataclasses import dataclass

from fuzz.from_clause import From
from fuzz.terms import Ref, Scalar

Columns = tuple[Ref, ...]


@dataclass(frozen=True)
class Scan:
    """A table, a view or a stream table: each column with the name that the query gives to it."""

    table: str
    fields: tuple[tuple[str, Ref], ...]
    operator: str | None = "scan"
    items: tuple[str, ...] = ()

    @property
    def columns(self) -> Columns:
        return tuple(ref for _, ref in self.fields)


@dataclass(frozen=True)
class Values:
    """Rows of literals."""

    columns: Columns
    rows: tuple[tuple[Scalar, ...], ...]
    operator: str | None = "values"
    items: tuple[str, ...] = ()


@dataclass(frozen=True)
class Series:
    """A table function on its own, or beside each row of `child`."""

    child: Relation | None
    call: Scalar
    columns_added: Columns
    outer: bool = False
    ordinality: bool = False
    operator: str | None = "function"
    items: tuple[str, ...] = ()

    @property
    def columns(self) -> Columns:
        return (() if self.child is None else self.child.columns) + self.columns_added


@dataclass(frozen=True)
class Filter:
    """Rows that fulfil a condition, which may ask other queries."""

    child: Relation
    condition: Scalar
    operator: str | None = "filter"
    items: tuple[str, ...] = ()

    @property
    def columns(self) -> Columns:
        return self.child.columns


@dataclass(frozen=True)
class Extend:
    """Columns computed from each row, beside those that are there."""

    child: Relation
    added: tuple[tuple[Ref, Scalar], ...]
    operator: str | None = "project"
    items: tuple[str, ...] = ()

    @property
    def columns(self) -> Columns:
        return self.child.columns + tuple(ref for ref, _ in self.added)


@dataclass(frozen=True)
class Fit:
    """Only some expressions of each row; what any SELECT does."""

    child: Relation
    outputs: tuple[tuple[Ref, Scalar], ...]
    operator: str | None = None
    items: tuple[str, ...] = ()

    @property
    def columns(self) -> Columns:
        return tuple(ref for ref, _ in self.outputs)


@dataclass(frozen=True)
class Join:
    """Two relations. `merged` has a name for each pair of columns that USING or NATURAL makes one.

    A lateral join's right side may use columns of the left.
    """

    kind: str
    left: Relation
    right: Relation
    condition: Scalar | None = None
    merged: tuple[tuple[Ref, Ref, Ref], ...] = ()
    natural: bool = False
    lateral: bool = False
    operator: str | None = "join"
    items: tuple[str, ...] = ()

    @property
    def columns(self) -> Columns:
        gone = {ref for _, left, right in self.merged for ref in (left, right)}
        both = (*self.left.columns, *self.right.columns)
        return (*(ref for ref, _, _ in self.merged), *(ref for ref in both if ref not in gone))


@dataclass(frozen=True)
class Aggregate:
    """Groups; `sets` are the grouping sets, None for plain keys."""

    child: Relation
    keys: Columns
    calls: tuple[tuple[Ref, Scalar], ...]
    sets: str | None = None
    operator: str | None = "aggregate"
    items: tuple[str, ...] = ()

    @property
    def columns(self) -> Columns:
        return self.keys + tuple(ref for ref, _ in self.calls)


@dataclass(frozen=True)
class Window:
    """Columns computed by window functions, beside those that are there."""

    child: Relation
    added: tuple[tuple[Ref, Scalar], ...]
    operator: str | None = "window"
    items: tuple[str, ...] = ()

    @property
    def columns(self) -> Columns:
        return self.child.columns + tuple(ref for ref, _ in self.added)


@dataclass(frozen=True)
class Distinct:
    """Each row once, or the first of each `on`."""

    child: Relation
    on: tuple[Order, ...] = ()
    order: tuple[Order, ...] = ()
    operator: str | None = "distinct"
    items: tuple[str, ...] = ()

    @property
    def columns(self) -> Columns:
        return self.child.columns


@dataclass(frozen=True)
class Order:
    """One column of an ORDER BY."""

    ref: Ref
    suffix: str = ""


@dataclass(frozen=True)
class TopK:
    """The first rows."""

    child: Relation
    order: tuple[Order, ...]
    limit: int
    offset: int = 0
    ties: bool = False
    operator: str | None = "topk"
    items: tuple[str, ...] = ()

    @property
    def columns(self) -> Columns:
        return self.child.columns


@dataclass(frozen=True)
class SetOperation:
    """UNION, INTERSECT or EXCEPT of relations whose columns have the same kinds."""

    word: str
    left: Relation
    right: Relation
    names: Columns
    operator: str | None = "union all"
    items: tuple[str, ...] = ()

    @property
    def columns(self) -> Columns:
        return self.names


@dataclass(frozen=True)
class Recursion:
    """Ways over the pairs of `right` that begin with a pair of `left`, both of two int columns.

    With a number in `deepest` the ways are counted, up to that length: `names` has one for it.
    """

    left: Relation
    right: Relation
    names: Columns
    deepest: int | None = None
    operator: str | None = "recursive"
    items: tuple[str, ...] = ()

    @property
    def columns(self) -> Columns:
        return self.names


@dataclass(frozen=True)
class Named:
    """A relation written as a derived table, a CTE, a view or a stream table of its own."""

    child: Relation
    form: str
    operator: str | None = None
    items: tuple[str, ...] = ()

    @property
    def columns(self) -> Columns:
        return self.child.columns


@dataclass(frozen=True)
class Again:
    """A second reading of the rows of `child`, which is a Named of the same view."""

    child: Named
    fields: tuple[tuple[str, Ref], ...]
    operator: str | None = None
    items: tuple[str, ...] = ()

    @property
    def columns(self) -> Columns:
        return tuple(ref for _, ref in self.fields)


Relation = (
    Scan
    | Values
    | Series
    | Filter
    | Extend
    | Fit
    | Join
    | From
    | Aggregate
    | Window
    | Distinct
    | TopK
    | SetOperation
    | Recursion
    | Named
    | Again
)
