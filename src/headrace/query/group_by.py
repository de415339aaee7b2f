"""GROUP BY: grouping sets, their keys, and a query block over its groups.

Filter (HAVING) over Aggregate over Project (keys and arguments) over the block's rows

Several grouping sets are the sum of one Aggregate each, with NULL for the keys that a set lacks:

Filter (HAVING) over UnionAll of Project (all keys, NULL where missing) over Aggregate
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from sqlglot import exp

from headrace.algebra.scalar import Column, Literal, Scalar, columns_of
from headrace.plan.operators import Aggregate, AggregateCall, Filter, Operator, Project, UnionAll
from headrace.query.coerce import settled
from headrace.query.expressions import Expressions
from headrace.query.grouping import Aggregates, GroupKeys, is_quotient
from headrace.query.identifiers import ColumnIds, name_of
from headrace.query.output_names import output_name
from headrace.query.refusal import incomparable, refuse, require_exact
from headrace.query.scope import Scope, find
from headrace.types import INTEGER

MAXIMUM_SETS = 64
"""Each set is grouped by itself, in a stage of its own."""

Keys = tuple[exp.Expr, ...]


def grouping_sets(group: exp.Group) -> tuple[Keys, ...]:
    """Return the sets that the rows are grouped by.

    Entries of GROUP BY multiply, as in PostgreSQL.
    """
    return tuple(_product([_sets(entry) for entry in group.expressions], group))


def is_distinct(group: exp.Group) -> bool:
    """Return whether equal sets count once, by GROUP BY DISTINCT.

    The parser marks that with `all` being false.
    """
    return group.args.get("all") is False


def _sets(entry: exp.Expr) -> list[Keys]:
    match entry:
        case exp.GroupingSets():
            return [keys for part in entry.expressions for keys in _sets(part)]
        case exp.Rollup():
            parts = [_keys(part) for part in entry.expressions]
            return [_joined(parts[:end]) for end in range(len(parts), -1, -1)]
        case exp.Cube():
            parts = [_keys(part) for part in entry.expressions]
            if 2 ** len(parts) > MAXIMUM_SETS:
                raise _too_many(entry)
            chosen = product((True, False), repeat=len(parts))
            return [_joined(p for p, is_in in zip(parts, c, strict=True) if is_in) for c in chosen]
        case _:
            return [_keys(entry)]


def _keys(entry: exp.Expr) -> Keys:
    """Return the keys of a plain entry: several in parentheses, none in empty ones."""
    match entry:
        case exp.Tuple():
            return tuple(entry.expressions)
        case exp.Paren():
            return _keys(entry.this)
        case _:
            return (entry,)


def _joined(parts: Iterable[Keys]) -> Keys:
    return tuple(key for keys in parts for key in keys)


def _product(factors: list[list[Keys]], group: exp.Group) -> list[Keys]:
    count = 1
    for factor in factors:
        count *= len(factor)
        if count > MAXIMUM_SETS:
            raise _too_many(group)
    return [_joined(parts) for parts in product(*factors)]


def _too_many(node: exp.Expr) -> Exception:
    message = f"more than {MAXIMUM_SETS} grouping sets are not maintained"
    return refuse("unsupported-query", message, node, "Make several stream tables of them.")


MAXIMUM_GROUPING = 31
"""Arguments of GROUPING: the result has a bit for each."""


@dataclass(frozen=True)
class Key:
    """One key of GROUP BY, with a name for its column."""

    scalar: Scalar
    name: str
    node: exp.Expr


@dataclass(frozen=True)
class Having:
    """The condition of HAVING over rows, and where it stands."""

    condition: Scalar
    node: exp.Expr


class Grouped:
    """The groups of a block: one for each of several sets of keys, at least one set.

    Expressions are said over the groups first, by `over`: that may find further keys. Then `plan`
    gives the groups' rows. `windows` are columns that windows over the groups will compute.
    """

    def __init__(
        self,
        sets: Sequence[Sequence[Key]],
        aggregates: Aggregates,
        windows: frozenset[Column],
        scope: Scope,
        ids: ColumnIds,
    ) -> None:
        if not all(sets) and not aggregates.arguments:
            # The one group without keys has a row even where there is nothing to compute.
            aggregates.count_rows()
        columns: dict[Scalar, Column] = {}
        for key in (key for keys in sets for key in keys):
            for kind, results in (("aggregate", aggregates.outputs), ("window", windows)):
                if not columns_of(key.scalar).isdisjoint(results):
                    message = f"{kind} functions are not allowed in GROUP BY"
                    raise refuse("invalid-query", message, key.node)
            if key.scalar not in columns:
                columns[key.scalar] = _column(key.scalar, key.name, ids)
        self._sets = [frozenset(key.scalar for key in keys) for keys in sets]
        common = frozenset(columns).intersection(*self._sets)
        self._written = frozenset(columns)
        self._aggregates = aggregates
        self._scope = scope
        self._ids = ids
        self._groups = GroupKeys(columns, common, aggregates.outputs | windows, scope)

    def over(self, scalar: Scalar, node: exp.Expr) -> Scalar:
        """Return an expression of the block, said over its groups."""
        return self._groups.over(scalar, node)

    @property
    def quotients(self) -> frozenset[Column]:
        """The columns of the groups that come from a numeric division."""
        below = self._scope.all_quotients
        keys = self._groups.keys.items()
        divided = frozenset(column for scalar, column in keys if is_quotient(scalar, below))
        return self._aggregates.quotients(below) | divided

    def plan(self, rows: Operator, having: Having | None) -> Operator:
        """Return the groups of `rows` that HAVING lets through."""
        condition = None if having is None else self.over(having.condition, having.node)
        computed = dict(self._groups.keys)
        for argument in self._aggregates.arguments:
            if argument not in computed:
                computed[argument] = _column(argument, "argument", self._ids)
        if computed:
            rows = Project(rows, tuple((column, scalar) for scalar, column in computed.items()))
        calls = self._aggregates.calls(computed)
        plans = [self._of_set(keys, rows, calls) for keys in self._sets]
        plan = plans[0] if len(plans) == 1 else UnionAll(tuple(plans))
        return plan if condition is None else Filter(plan, condition)

    def _of_set(
        self, keys: frozenset[Scalar], rows: Operator, calls: Sequence[AggregateCall]
    ) -> Operator:
        missing = self._written - keys
        grouped = tuple(c for scalar, c in self._groups.keys.items() if scalar not in missing)
        groups = Aggregate(rows, grouped, tuple(calls))
        if len(self._sets) == 1 and not self._aggregates.groupings:
            return groups
        outputs: list[tuple[Column, Scalar]] = [
            (column, Literal(None, column.type) if scalar in missing else column)
            for scalar, column in self._groups.keys.items()
        ]
        outputs += ((call.output, call.output) for call in calls)
        outputs += self._groupings(keys)
        return Project(groups, tuple(outputs))

    def _groupings(self, keys: frozenset[Scalar]) -> list[tuple[Column, Scalar]]:
        """Return the bits of its arguments for each call of GROUPING, the last one lowest."""
        outputs: list[tuple[Column, Scalar]] = []
        for arguments, (column, node) in self._aggregates.groupings.items():
            if not 0 < len(arguments) <= MAXIMUM_GROUPING:
                message = f"GROUPING must have 1 to {MAXIMUM_GROUPING} arguments"
                raise refuse("invalid-query", message, node)
            bits = 0
            for argument in arguments:
                if argument not in self._written:
                    message = "arguments to GROUPING must be grouping expressions"
                    raise refuse("invalid-query", message, node)
                bits = bits * 2 + (argument not in keys)
            outputs.append((column, Literal(bits, INTEGER)))
        return outputs


def _column(scalar: Scalar, name: str, ids: ColumnIds) -> Column:
    return scalar if isinstance(scalar, Column) else ids.computed(name, scalar.type)


Outputs = Sequence[tuple[str, Scalar]]


def group_keys(select: exp.Select, scope: Scope, outputs: Outputs) -> tuple[tuple[Key, ...], ...]:
    """Return the grouping sets of a block, none if it has no GROUP BY.

    A key is an output's position, an input column, an output's name, or an expression, in that
    order. `outputs` are the block's outputs by their names.
    """
    group = select.args.get("group")
    if group is None:
        return ()
    known_keys: dict[int, Key] = {}

    def bound(node: exp.Expr) -> Key:
        if id(node) not in known_keys:
            known_keys[id(node)] = _key(node, scope, outputs)
        return known_keys[id(node)]

    sets = tuple(tuple(bound(node) for node in keys) for keys in grouping_sets(group))
    if not is_distinct(group):
        return sets
    different = {frozenset(key.scalar for key in keys): keys for keys in reversed(sets)}
    return tuple(reversed(different.values()))


def _key(node: exp.Expr, scope: Scope, outputs: Outputs) -> Key:
    scalar = _scalar(node, scope, outputs)
    if scalar.type.comparison == "none":
        raise incomparable("GROUP BY", scalar.type, node)
    require_exact(scalar.type, "GROUP BY", node)
    return Key(scalar, output_name(node), node)


def _scalar(node: exp.Expr, scope: Scope, outputs: Outputs) -> Scalar:
    if isinstance(node, exp.Literal):
        if node.is_string or not node.name.isdigit():
            raise refuse("invalid-query", "non-integer constant in GROUP BY", node)
        if not 1 <= int(node.name) <= len(outputs):
            message = f"GROUP BY position {node.name} is not in select list"
            raise refuse("invalid-query", message, node)
        return outputs[int(node.name) - 1][1]
    if isinstance(node, exp.Column) and node.args.get("table") is None:
        name = name_of(node.this)
        if not find(name, scope.columns):
            named = {scalar for alias, scalar in outputs if alias == name}
            if len(named) > 1:
                raise refuse("ambiguous-column", f'GROUP BY "{name}" is ambiguous', node)
            if named:
                return named.pop()
    return settled(Expressions(scope, "GROUP BY").bind(node))
