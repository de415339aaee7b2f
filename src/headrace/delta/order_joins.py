"""Inner joins in an order that leads outward from the change.

    (A × B) ⋈ ΔC  =  (ΔC ⋈ A) ⋈ B         where a condition connects C with A, and one C with B

As a query has them written, two relations may stand beside each other that only a third connects.
In the change of the third, their product would come first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headrace.algebra.scalar import Call, Column, Scalar, columns_of
from headrace.functions import call, can_raise, chain
from headrace.plan.conditions import EqualColumns, Pair, equal_pair
from headrace.plan.operators import Join, Operator, Project, Scan
from headrace.plan.passes.push_filters import conjuncts


def order_joins(plan: Operator) -> Operator:
    """Return the plan with ordered joins; a join with a condition that can raise stays as it is."""
    if not isinstance(plan, Join):
        return plan.with_children(*map(order_joins, plan.children))
    leaves = [order_joins(leaf) for leaf in _leaves(plan)]
    conditions = [term for node in _joins(plan) for term in _terms(node)]
    if len(leaves) < 3 or any(map(can_raise, conditions)):
        return _over(plan, iter(leaves))
    joined = _joined(leaves, conditions)
    if joined.columns == plan.columns:
        return joined
    return Project(joined, tuple((column, column) for column in plan.columns))


def connect_joins(plan: Operator) -> Operator:
    """Return the plan with ordered joins if that leaves fewer products of unconnected relations.

    A query may name the table that connects all others last. Cut into stages as it is written, a
    product would be kept as a relation of its own.
    """
    ordered = order_joins(plan)
    return ordered if _products(ordered) < _products(plan) else plan


def _products(plan: Operator) -> int:
    """Return the number of joins without a condition."""
    own = isinstance(plan, Join) and plan.condition is None
    return own + sum(map(_products, plan.children))


def _joins(plan: Operator) -> Iterator[Join]:
    if isinstance(plan, Join):
        yield plan
        yield from _joins(plan.left)
        yield from _joins(plan.right)


def _leaves(plan: Operator) -> Iterator[Operator]:
    if isinstance(plan, Join):
        yield from _leaves(plan.left)
        yield from _leaves(plan.right)
    else:
        yield plan


def _over(plan: Operator, leaves: Iterator[Operator]) -> Operator:
    """Return the same joins over other leaves."""
    if not isinstance(plan, Join):
        return next(leaves)
    left = _over(plan.left, leaves)
    return plan.with_children(left, _over(plan.right, leaves))


def _terms(join: Join) -> tuple[Scalar, ...]:
    return () if join.condition is None else conjuncts(join.condition)


def _joined(leaves: list[Operator], conditions: list[Scalar]) -> Operator:
    """Return the joins of the leaves, each connected with those before it as far as possible.

    Equal columns are compared with the first of them that is known, of the change if it has one: so
    every other relation is looked up by the keys of the change itself, where that is possible.
    """
    place = {column: i for i, leaf in enumerate(leaves) for column in leaf.columns}
    pairs = {
        pair: term
        for term in conditions
        if (pair := equal_pair(term)) is not None and place[pair[0]] != place[pair[1]]
    }
    links = _Links(pairs, place)
    first = next((leaf for leaf in leaves if _has_change(leaf)), leaves[0])
    left, rest = first, [leaf for leaf in leaves if leaf is not first]
    across = frozenset(pairs.values())
    open_terms = [term for term in conditions if term not in across]
    links.add(first)
    while rest:
        known_columns = frozenset(left.columns)
        connected = (
            leaf
            for leaf in rest
            if links.reaches(leaf) or _connected(known_columns, leaf, open_terms)
        )
        leaf = next(connected, rest[0])
        rest.remove(leaf)
        both = known_columns | frozenset(leaf.columns)
        due = [term for term in open_terms if columns_of(term) <= both]
        open_terms = [term for term in open_terms if term not in due]
        due += [
            pairs.get(pair) or pairs.get(pair[::-1]) or call("=", *pair) for pair in links.add(leaf)
        ]
        left = Join(left, leaf, chain("and", due) if due else None)
    return left


class _Links:
    """Classes of equal columns, each with the columns of it that are known so far."""

    def __init__(self, pairs: Iterable[Pair], columns: Iterable[Column]) -> None:
        classes = EqualColumns(pairs).classes(columns)
        self._class = {
            column: number
            for number, equal_columns in enumerate(classes)
            for column in equal_columns
        }
        self._known: list[list[Column]] = [[] for _ in classes]
        # Columns of one leaf whose equality no condition of the plan states yet.
        self._unstated: list[list[Column]] = [[] for _ in classes]

    def reaches(self, leaf: Operator) -> bool:
        """Return whether a column of the leaf is equal to a known one."""
        return any(
            self._known[self._class[column]] for column in leaf.columns if column in self._class
        )

    def add(self, leaf: Operator) -> list[Pair]:
        """Add the leaf; return the pairs that make its columns equal to those known before."""
        pairs: list[Pair] = []
        own: dict[int, list[Column]] = {}
        for column in leaf.columns:
            if column in self._class:
                own.setdefault(self._class[column], []).append(column)
        for number, columns in own.items():
            known_columns = self._known[number]
            if known_columns:
                pairs += [(known_columns[0], column) for column in columns]
                pairs += [(column, columns[0]) for column in self._unstated[number]]
                self._unstated[number] = []
            else:
                self._unstated[number] = columns[1:]
            known_columns += columns
        return pairs


def _connected(known_columns: frozenset[Column], leaf: Operator, terms: list[Scalar]) -> bool:
    """Return whether a condition equates something of the leaf with something known."""
    own = frozenset(leaf.columns)
    for term in terms:
        if isinstance(term, Call) and term.function in ("=", "is not distinct from"):
            read = columns_of(term)
            if read & own and read & known_columns and read <= own | known_columns:
                return True
    return False


def _has_change(plan: Operator) -> bool:
    if isinstance(plan, Scan):
        return plan.version in ("change", "stale")
    return any(map(_has_change, plan.children))
