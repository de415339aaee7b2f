"""Expressions: syntax tree to typed scalar, with PostgreSQL's rules for names and types."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from headrace.algebra.scalar import Literal, Scalar
from headrace.functions import call, cast, chain
from headrace.query.aggregate_calls import request, within_aggregate, written
from headrace.query.arithmetic import BITS, arithmetic, bits, negated
from headrace.query.array_expressions import (
    PAIRS,
    cast_constructor,
    constructed,
    paired,
    subscripted,
)
from headrace.query.calls import KEYWORD_CALLS, keyword_call, refuse_call
from headrace.query.clauses import SESSION, SESSION_WORDS
from headrace.query.coerce import condition, settled, unified
from headrace.query.comparisons import COMPARISONS, Comparisons, is_compared
from headrace.query.grouping import Aggregates
from headrace.query.identifiers import name_of
from headrace.query.literals import Bound, Untyped, interval_constant, number
from headrace.query.matching import MATCHES, matches, meant
from headrace.query.operations import (
    call_named,
    compare,
    concatenate,
    constant_as,
    extracted,
    is_extraction,
    negation,
    repeatable,
)
from headrace.query.ordering import is_array_of_query
from headrace.query.refusal import located, refuse
from headrace.query.scope import Scope
from headrace.query.subqueries import gathered, percentiles
from headrace.query.type_names import named_type
from headrace.query.windows import OF_WINDOWS, Windows
from headrace.types import BOOLEAN, plain_text

_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
}


@dataclass(frozen=True)
class Expressions:
    """Binds the expressions of one clause.

    `aggregates` collects the aggregate calls it meets, `windows` those with OVER; None where the
    clause allows none.
    """

    scope: Scope
    clause: str
    aggregates: Aggregates | None = None
    windows: Windows | None = None

    def condition(self, node: exp.Expr) -> Scalar:
        """Return a boolean expression, the clause's whole."""
        return condition(self.bind(node), self.clause, node)

    def bind(self, node: exp.Expr) -> Bound:
        """Return the expression's meaning; a constant may still be without a type."""
        match node:
            case exp.Paren():
                return self.bind(node.this)
            case exp.Column():
                return self._column(node)
            case exp.Literal():
                text: str = node.this
                return Untyped(text, node) if node.is_string else number(text, node)
            case exp.Null():
                return Untyped(None, node)
            case exp.Boolean():
                return Literal(bool(node.this), BOOLEAN)
            case exp.And():
                return self._connective(node, "and")
            case exp.Or():
                return self._connective(node, "or")
            case exp.Not():
                return negation(condition(self.bind(node.this), "NOT", node.this))
            case exp.Neg():
                return self._negative(node)
            case exp.Interval():
                return interval_constant(node)
            case exp.DPipe():
                return concatenate(self.bind(node.this), self.bind(node.args["expression"]), node)
            case exp.Array():
                return constructed(node, self.bind)
            case exp.Bracket():
                return subscripted(node, self.bind)
            case exp.Case():
                return self._case(node)
            case _ if is_extraction(node):
                return extracted(node, self.bind)
            case exp.Cast():
                return self._cast(node)
            case exp.Collate():
                return self._collate(node)
            case exp.Anonymous() if is_array_of_query(node):
                with located(node):
                    return self.bind(gathered(node))
            case exp.Anonymous():
                return self._call(node, None)
            case exp.Window():
                return self._window(node)
            case exp.Filter() | exp.WithinGroup():
                return self._filtered(node)
        if isinstance(node, (*MATCHES, exp.Escape)):
            return self._match(node)
        if isinstance(node, KEYWORD_CALLS):
            name, arguments = keyword_call(node)
            return call_named(name, [self.bind(argument) for argument in arguments], node)
        if isinstance(node, BITS):
            return bits(node, [self.bind(part) for part in node.iter_expressions()])
        if type(node) in _ARITHMETIC:
            left, right = self.bind(node.this), self.bind(node.args["expression"])
            with located(node):
                return arithmetic(_ARITHMETIC[type(node)], left, right)
        if type(node) in PAIRS:
            return paired(node, self.bind(node.this), self.bind(node.args["expression"]))
        if isinstance(node, COMPARISONS):
            return Comparisons(self.bind, self.scope, self.clause).comparison(node)
        raise refuse("unsupported-query", f"{node.key.upper()} is not an expression here", node)

    def _column(self, node: exp.Column) -> Scalar:
        if isinstance(node.this, exp.Star):
            raise refuse("unsupported-query", "a star stands for columns only in SELECT", node)
        bare = node.args.get("table") is None and not node.this.args.get("quoted")
        if bare and name_of(node.this) in SESSION_WORDS:
            message = f"{name_of(node.this)}: {SESSION.name} is not maintained"
            raise refuse(SESSION.code, message, node, SESSION.hint)
        return self.scope.column(node)

    def _connective(self, node: exp.Expr, name: str) -> Scalar:
        """Return a chain of thousands as a shallow tree: same order, logarithmic depth."""
        links: list[exp.Expr] = []
        rest: exp.Expr = node
        while type(rest) is type(node):
            links.append(rest.args["expression"])
            rest = rest.this
        links.append(rest)
        terms = [condition(self.bind(link), name.upper(), link) for link in reversed(links)]
        return chain(name, terms)

    def _negative(self, node: exp.Neg) -> Bound:
        # Signs and parentheses before a constant belong to it, before it gets its type.
        sign, inner = "-", node.this
        while isinstance(inner, (exp.Paren, exp.Neg)):
            if isinstance(inner, exp.Neg):
                sign = "" if sign else "-"
            inner = inner.this
        if isinstance(inner, exp.Literal) and not inner.is_string:
            return number(f"{sign}{inner.this}", inner)
        with located(node):
            return negated(settled(self.bind(node.this)))

    def _match(self, node: exp.Expr) -> Scalar:
        test = meant(node)
        text, pattern = self.bind(test.text), self.bind(test.pattern)
        escape = None if test.escape is None else self.bind(test.escape)
        result = matches(test.kind, text, pattern, escape, node)
        return negation(result) if test.negated else result

    def _case(self, node: exp.Case) -> Scalar:
        # A bare constant as the subject is text, whatever it is compared with.
        times = len(node.args["ifs"])
        subject = None if node.this is None else repeatable(settled(self.bind(node.this)), times)
        tests: list[Scalar] = []
        values: list[Bound] = []
        for branch in node.args["ifs"]:
            test = self.bind(branch.this)
            if subject is None:
                tests.append(condition(test, "CASE/WHEN", branch.this))
            else:
                tests.append(compare("=", subject, test, branch.this))
            values.append(self.bind(branch.args["true"]))
        default = node.args.get("default")
        values.append(Untyped(None, node) if default is None else self.bind(default))
        # For PostgreSQL the ELSE comes first when it looks for the common type.
        last, *branches = unified([values[-1], *values[:-1]], "CASE", node)
        pairs = [part for pair in zip(tests, branches, strict=True) for part in pair]
        return call("case", *pairs, last)

    def _cast(self, node: exp.Cast) -> Bound:
        listed = cast_constructor(node, self.bind)
        if listed is not None:
            return listed
        bound = self.bind(node.this)
        if node.args["to"].this == exp.DType.BPCHAR and not is_compared(node):
            # It keeps trailing blanks that it does not compare; PostgreSQL prints it in views.
            message = "a char without a length has no exact counterpart on Spark"
            raise refuse("unsupported-type", message, node)
        if isinstance(bound, Untyped):
            return constant_as(bound, named_type(node.args["to"], None))
        target = named_type(node.args["to"], bound.type)
        if target.is_text:
            origin = bound.type if bound.type.is_text else plain_text()
            target = replace(target, ordered=origin.ordered, folds=origin.folds)
        with located(node):
            return cast(bound, target)

    def _collate(self, node: exp.Collate) -> Scalar:
        collation = node.args["expression"]
        if not isinstance(collation, exp.Identifier) or name_of(collation) != "C":
            raise refuse(
                "unsupported-query",
                f"COLLATE {collation.sql(dialect='postgres')} is not maintained",
                node,
                'Only COLLATE "C" orders text alike in both engines.',
            )
        scalar = self.bind(node.this)
        if isinstance(scalar, Untyped):
            hint = "Write it after the column that the constant is compared with."
            raise refuse("unsupported-query", "COLLATE after a constant", node, hint)
        if not scalar.type.is_text:
            raise refuse("invalid-query", f"{scalar.type.sql} has no collation", node)
        return cast(scalar, replace(scalar.type, ordered=True, folds=True))

    def _call(
        self, node: exp.Anonymous, only: Scalar | None, within: exp.Order | None = None
    ) -> Bound:
        """Return a function by its name.

        `only` is the condition of FILTER, `within` the order of WITHIN GROUP.
        """
        name = name_of(node.this)
        if Aggregates.knows(name):
            if self.aggregates is None:
                message = f"aggregate functions are not allowed in {self.clause}"
                raise refuse("invalid-query", message, node)
            inside = within_aggregate(self, name)
            return self.aggregates.column(request(written(node, name, within), only, inside))
        if name == "grouping" and self.aggregates is not None:
            inside = within_aggregate(self, name)
            keys = tuple(settled(inside.bind(argument)) for argument in node.expressions)
            return self.aggregates.grouping(keys, node)
        if any(isinstance(argument, (exp.Order, exp.Distinct)) for argument in node.expressions):
            raise refuse_call(name, node)
        if name in OF_WINDOWS:
            message = f"window function {name} requires an OVER clause"
            raise refuse("invalid-query", message, node)
        if only is not None or within is not None:
            clause = "FILTER" if within is None else "WITHIN GROUP"
            raise refuse("invalid-query", f"{clause} is not allowed after {name}", node)
        if any(isinstance(argument, exp.Star) for argument in node.expressions):
            raise refuse("invalid-query", f"{name}(*) is not an aggregate", node)
        arguments = [self.bind(argument) for argument in node.expressions]
        return call_named(name, arguments, node)

    def _window(self, node: exp.Window) -> Scalar:
        if self.windows is None:
            message = f"window functions are not allowed in {self.clause}"
            raise refuse("invalid-query", message, node)
        return self.windows.call(node, self)

    def _filtered(self, node: exp.Expr) -> Bound:
        """Return an aggregate call with FILTER or WITHIN GROUP after it."""
        only: Scalar | None = None
        within: exp.Order | None = None
        inner = node
        listed = _several_percentiles(node)
        if listed is not None:
            return self.bind(listed)
        if isinstance(inner, exp.Filter):
            inside = replace(self, clause="FILTER", aggregates=None, windows=None)
            only = inside.condition(inner.args["expression"].this)
            inner = inner.this
        if isinstance(inner, exp.WithinGroup):
            within, inner = inner.args["expression"], inner.this
        if not isinstance(inner, exp.Anonymous):
            raise refuse("unsupported-query", "FILTER is not maintained here", node)
        return self._call(inner, only, within)


def _several_percentiles(node: exp.Expr) -> exp.Expr | None:
    """Return the plain form of a percentile function with ARRAY[…] of fractions.

    Return None for other calls.
    """
    only = node.args["expression"] if isinstance(node, exp.Filter) else None
    match node.this if only is not None else node:
        case exp.WithinGroup(
            this=exp.Anonymous(expressions=[exp.Array(expressions=fractions)]) as call_,
            expression=exp.Order(expressions=[_]) as within,
        ) if fractions and name_of(call_.this) in ("percentile_cont", "percentile_disc"):
            return percentiles(call_, within, only, fractions)
    return None
