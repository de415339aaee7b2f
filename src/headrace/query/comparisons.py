"""Comparisons: operators, IS, BETWEEN, IN, ANY and ALL, of values, rows, arrays and queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from headrace.algebra.scalar import Literal, Scalar, columns_of
from headrace.functions import call, cast, chain
from headrace.query.array_expressions import array_items, quantified_array, quantified_comparison
from headrace.query.coerce import condition, lossless_together, settled, unified
from headrace.query.literals import Bound, Untyped
from headrace.query.operations import compare, negation, repeatable
from headrace.query.refusal import located, refuse, require_exact
from headrace.query.scope import Scope
from headrace.query.subqueries import Inner, quantified
from headrace.types import BOOLEAN

OPERATORS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "is not distinct from",
}

_OF_ROWS = ("=", "<>", "<", "<=", ">", ">=")

COMPARISONS = (*OPERATORS, exp.NullSafeNEQ, exp.Is, exp.Between, exp.In, exp.Exists, exp.Subquery)


@dataclass(frozen=True)
class Comparisons:
    """Binds comparisons, and the queries that values are compared with, in one clause."""

    bind: Callable[[exp.Expr], Bound]
    scope: Scope
    clause: str

    def comparison(self, node: exp.Expr) -> Scalar:
        """Return the meaning of a node of `COMPARISONS`."""
        match node:
            case exp.Between():
                return self._between(node)
            case exp.In():
                return self._in(node)
            case exp.Is() | exp.NullSafeNEQ():
                return self._test(node)
            case exp.Exists() | exp.Subquery():
                return self._subquery(node)
        name, right = OPERATORS[type(node)], node.args["expression"]
        quantifier = quantified(right)
        if quantifier is not None:
            return self._quantified(node, name, *quantifier)
        if isinstance(node.this, exp.Tuple):
            return self._rows(node, name)
        listed = array_items(node)
        if listed is not None:
            value, *items = (self.bind(part) for part in (node.this, *listed))
            result = self._one_of_array(beside_array(value, items, node), items, node)
            return negation(result) if isinstance(node, exp.NEQ) else result
        over = quantified_array(right)
        if over is not None:
            array_quantifier, array = over
            return quantified_comparison(
                name, self.bind(node.this), array_quantifier, self.bind(array), node
            )
        return compare(name, self.bind(node.this), self.bind(right), node)

    def _test(self, node: exp.Expr) -> Scalar:
        """Return IS or IS DISTINCT FROM, or its negated form."""
        left = self.bind(node.this)
        right = node.args["expression"]
        if isinstance(node, exp.NullSafeNEQ):
            return negation(compare("is not distinct from", left, self.bind(right), node))
        if isinstance(right, exp.Null):
            result: Scalar = call("is null", settled(left))
        elif isinstance(right, exp.Boolean):
            truth = Literal(bool(right.this), BOOLEAN)
            result = call("is not distinct from", condition(left, "IS", node), truth)
        else:
            raise refuse("unsupported-query", f"IS {right.sql()} is not maintained", node)
        return negation(result) if node.args.get("negate") else result

    def _between(self, node: exp.Between) -> Scalar:
        value = repeatable(self.bind(node.this), 2)
        low = compare(">=", value, self.bind(node.args["low"]), node)
        high = compare("<=", value, self.bind(node.args["high"]), node)
        return call("and", low, high)

    def _subquery(self, node: exp.Expr) -> Scalar:
        inner = self._inner(node)
        if isinstance(node, exp.Exists):
            return inner.exists(node, self.scope)
        return inner.scalar(node, self.scope)

    def _inner(self, node: exp.Expr) -> Inner:
        if self.scope.inner is None:
            message = f"a subquery in {self.clause} is not maintained"
            raise refuse("unsupported-query", message, node)
        return self.scope.inner

    def _quantified(self, node: exp.Expr, name: str, which: str, query: exp.Expr) -> Scalar:
        """Return `x name ANY (query)` or `x name ALL (query)`; x may be a row of several."""
        inner = self._inner(node)
        left = [self.bind(part) for part in row_parts(node.this)]
        bind = inner.all if which == "all" else inner.any
        return bind(name, left, query, node, self.scope)

    def _rows(self, node: exp.Expr, name: str) -> Scalar:
        """Return `(a, b) = (c, d)` column by column; `<` and its like by the first that differ."""
        left, right = row_parts(node.this), row_parts(node.args["expression"])
        if name not in _OF_ROWS or not isinstance(node.args["expression"], exp.Tuple):
            raise refuse("unsupported-query", f"{name} on row values is not maintained", node)
        if len(left) != len(right):
            raise refuse("invalid-query", "unequal number of entries in row expressions", node)
        bound = map(self.bind, left), map(self.bind, right)
        if name not in ("=", "<>"):
            return _lexicographic(name, list(zip(*bound, strict=True)), node)
        pairs = zip(*bound, strict=True)
        terms = [compare(name, a, b, node) for a, b in pairs]
        return chain("or" if name == "<>" else "and", terms)

    def _in(self, node: exp.In) -> Scalar:
        query = node.args.get("query")
        if query is None and [type(item) for item in node.expressions] == [exp.Values]:
            (query,) = node.expressions
        if query is not None:
            return self._quantified(node, "=", "any", query)
        if isinstance(node.this, exp.Tuple):
            equal = [exp.EQ(this=node.this, expression=item) for item in node.expressions]
            return chain("or", [self._rows(equality, "=") for equality in equal])
        value, *items = (self.bind(part) for part in (node.this, *node.expressions))
        return self._one_of(value, items, node)

    def _one_of(self, value: Bound, items: Sequence[Bound], node: exp.Expr) -> Scalar:
        """Return whether a value equals one of the items, as a scalar.

        Several constants share one type with the value; a column is compared by itself.
        """
        constants = [item for item in items if is_constant(item)]
        terms: list[Scalar] = []
        if not lossless_together((value, *constants)):
            # Each is compared by itself, digit by digit.
            constants = []
        if len(constants) > 1 and not is_character(value) and not is_interval(value):
            for part in (value, *constants):
                if not isinstance(part, Untyped):
                    require_exact(part.type, "a comparison", node)
            with located(node):
                terms.append(call("in", *unified((value, *constants), "IN", node)))
            items = [item for item in items if not is_constant(item)]
        elif len(constants) > 1 and is_character(value) and not all(map(fits_character, constants)):
            hint = "Cast the char(n) expression to text."
            raise refuse("unsupported-query", "IN mixes char(n) with another type", node, hint)
        value = repeatable(value, len(items))
        terms.extend(compare("=", value, item, node) for item in items)
        return chain("or", terms)

    def _one_of_array(self, value: Bound, items: Sequence[Bound], node: exp.Expr) -> Scalar:
        """Return whether a value equals an item of an array, which has a type by itself."""
        elements = as_elements(items, node)
        kinds = {element.type.kind for element in elements if not isinstance(element, Untyped)}
        if not isinstance(value, Untyped):
            kinds.add(value.type.kind)
        alike = len(kinds) == 1 or "real" not in kinds
        if alike and elements is items and all(map(is_constant, items)):
            return self._one_of(value, items, node)
        value = repeatable(value, len(elements))
        return chain("or", [compare("=", value, element, node) for element in elements])


def _lexicographic(name: str, pairs: Sequence[tuple[Bound, Bound]], node: exp.Expr) -> Scalar:
    """Return `a < c OR (a = c AND b < d)`.

    The result is NULL if the first pair that is not equal is not comparable.
    """
    *before, (left, right) = pairs
    result = compare(name, left, right, node)
    strict = name.rstrip("=")
    for pair in reversed(before):
        first, second = (repeatable(side, 2) for side in pair)
        rest = call("and", compare("=", first, second, node), result)
        result = call("or", compare(strict, first, second, node), rest)
    return result


def row_parts(node: exp.Expr) -> list[exp.Expr]:
    """Return the parts of `(a, b)`, or the one expression."""
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node]


def is_compared(node: exp.Expr) -> bool:
    """Return whether the expression is a side of a comparison, or one of its alternatives."""
    parent = node.parent
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    return type(parent) in (*OPERATORS, exp.NullSafeNEQ, exp.In, exp.Array)


def is_constant(bound: Bound) -> bool:
    """Return whether the value is the same for all rows of this query, as what Outer gives is."""
    return isinstance(bound, Untyped) or not columns_of(bound)


def as_elements(items: Sequence[Bound], node: exp.Expr) -> Sequence[Bound]:
    """Return the items of an array in the one type that PostgreSQL gives them.

    They stay as they are where that changes nothing: items of one kind, exact numbers, NULL.
    """
    written = [item for item in items if not isinstance(item, Untyped) or item.text is not None]
    types = [None if isinstance(item, Untyped) else item.type for item in written]
    one_kind = len({type_ and type_.kind for type_ in types}) < 2
    exact = all(type_ and (type_.is_integer or type_.kind == "numeric") for type_ in types)
    if one_kind or exact or not lossless_together(items):
        return items
    with located(node):
        return unified(items, "ARRAY", node)


def beside_array(value: Bound, items: Sequence[Bound], node: exp.Expr) -> Bound:
    """Return the value as it is compared with a spelled-out array, which has a type by itself.

    Beside a char(n) the constants of an IN list are of its type. Those of an array are text.
    """
    bare = all(isinstance(item, Untyped) for item in items)
    if bare and not isinstance(value, Untyped) and is_character(value):
        return cast(value, replace(value.type, kind="text", length=None, unsized=False))
    texts = [item for item in items if not isinstance(item, Untyped) and item.type.is_text]
    if any(map(is_character, texts)) and not all(map(is_character, texts)):
        hint = "Cast the char(n) expressions to text."
        raise refuse("unsupported-query", "ARRAY mixes char(n) with another type", node, hint)
    return value


def is_character(bound: Bound) -> bool:
    return not isinstance(bound, Untyped) and bound.type.kind == "character"


def is_interval(bound: Bound) -> bool:
    return not isinstance(bound, Untyped) and bound.type.kind == "interval"


def fits_character(bound: Bound) -> bool:
    return isinstance(bound, Untyped) or is_character(bound)
