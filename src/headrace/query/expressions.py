"""Expressions: syntax tree to typed scalar, with PostgreSQL's rules for names and types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from sqlglot import exp

from headrace.functions import call, cast
from headrace.functions.numbers import undeclared
from headrace.plan.scalar import Call, Literal, Scalar, walk
from headrace.query.calls import CALLABLE, refuse_call
from headrace.query.clauses import SESSION, SESSION_WORDS
from headrace.query.coerce import (
    compared,
    condition,
    first_of_nullif,
    operands,
    settled,
    unified,
)
from headrace.query.grouping import Aggregates
from headrace.query.identifiers import name_of
from headrace.query.literals import PLAIN_TEXT, Bound, Untyped, number, typed
from headrace.query.parse import UNARY_PLUS, too_deep
from headrace.query.refusal import located, refuse
from headrace.query.scope import Scope
from headrace.query.type_names import named_type
from headrace.types import BOOLEAN, Type

_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
}
_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "is not distinct from",
}
LARGEST_REPEATED = 2000
"""Nodes of an expression, times its repetitions, that lowering may make of one operand."""

_ORDERING = frozenset({"<", "<=", ">", ">="})


@dataclass(frozen=True)
class Expressions:
    """Binds the expressions of one clause.

    `aggregates` collects the aggregate calls it meets; None where the clause allows none.
    """

    scope: Scope
    clause: str
    aggregates: Aggregates | None = None

    def condition(self, node: exp.Expr) -> Scalar:
        """A boolean expression, the clause's whole."""
        return condition(self.bind(node), self.clause, node)

    def bind(self, node: exp.Expr) -> Bound:
        """The expression's meaning; a constant may still be without a type."""
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
                return _not(condition(self.bind(node.this), "NOT", node.this))
            case exp.Neg():
                return self._negative(node)
            case exp.Is() | exp.Like() | exp.NullSafeNEQ():
                return self._test(node)
            case exp.Between():
                return self._between(node)
            case exp.In():
                return self._in(node)
            case exp.DPipe():
                return self._concatenation(node)
            case exp.Case():
                return self._case(node)
            case exp.Cast():
                return self._cast(node)
            case exp.Collate():
                return self._collate(node)
            case exp.Anonymous():
                return self._call(node, None)
            case exp.Filter():
                return self._filtered(node)
        if type(node) in _ARITHMETIC:
            left, right = operands(self.bind(node.this), self.bind(node.args["expression"]))
            with located(node):
                return call(_ARITHMETIC[type(node)], left, right)
        if type(node) in _COMPARISONS:
            left_, right_ = self.bind(node.this), self.bind(node.args["expression"])
            return _compare(_COMPARISONS[type(node)], left_, right_, node)
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
        """A chain of thousands is a shallow tree: same order, logarithmic depth."""
        links: list[exp.Expr] = []
        rest: exp.Expr = node
        while type(rest) is type(node):
            links.append(rest.args["expression"])
            rest = rest.this
        links.append(rest)
        terms = [condition(self.bind(link), name.upper(), link) for link in reversed(links)]
        return balanced(name, terms)

    def _negative(self, node: exp.Neg) -> Bound:
        inner = node.this
        if isinstance(inner, exp.Literal) and not inner.is_string:
            return number(f"-{inner.this}", inner)
        with located(node):
            return call("negate", settled(self.bind(inner)))

    def _test(self, node: exp.Expr) -> Scalar:
        """IS, LIKE and IS DISTINCT FROM, each with its negated form."""
        left = self.bind(node.this)
        right = node.args["expression"]
        if isinstance(node, exp.NullSafeNEQ):
            return _not(_compare("is not distinct from", left, self.bind(right), node))
        if isinstance(node, exp.Like):
            with located(node):
                result: Scalar = call("like", settled(left), settled(self.bind(right)))
        elif isinstance(right, exp.Null):
            result = call("is null", settled(left))
        elif isinstance(right, exp.Boolean):
            truth = Literal(bool(right.this), BOOLEAN)
            result = call("is not distinct from", condition(left, "IS", node), truth)
        else:
            raise refuse("unsupported-query", f"IS {right.sql()} is not maintained", node)
        return _not(result) if node.args.get("negate") else result

    def _between(self, node: exp.Between) -> Scalar:
        value = _repeatable(self.bind(node.this), 2)
        low = _compare(">=", value, self.bind(node.args["low"]), node)
        high = _compare("<=", value, self.bind(node.args["high"]), node)
        return call("and", low, high)

    def _in(self, node: exp.In) -> Scalar:
        bounds = [self.bind(node.this), *(self.bind(item) for item in node.expressions)]
        if _is_character(bounds[0]):
            # char(n) ignores blanks in a comparison, so each is one of its own.
            return balanced("or", [_compare("=", bounds[0], item, node) for item in bounds[1:]])
        with located(node):
            return call("in", *unified(bounds, "IN", node))

    def _concatenation(self, node: exp.DPipe) -> Scalar:
        """Text with anything: a bare constant is text, whatever stands beside it."""
        bounds = [self.bind(node.this), self.bind(node.args["expression"])]
        known = [b.type for b in bounds if not isinstance(b, Untyped) and b.type.is_text]
        if not known and not any(isinstance(bound, Untyped) for bound in bounds):
            raise refuse("unsupported-function", "|| needs text on one side", node)
        text = replace(known[0], kind="text", length=None) if known else PLAIN_TEXT
        sides = [typed(bound, text) if isinstance(bound, Untyped) else bound for bound in bounds]
        with located(node):
            return call("||", *(s if s.type.is_text else cast(s, PLAIN_TEXT) for s in sides))

    def _case(self, node: exp.Case) -> Scalar:
        # A bare constant as the subject is text, whatever it is compared with.
        times = len(node.args["ifs"])
        subject = None if node.this is None else _repeatable(settled(self.bind(node.this)), times)
        tests: list[Scalar] = []
        values: list[Bound] = []
        for branch in node.args["ifs"]:
            test = self.bind(branch.this)
            if subject is None:
                tests.append(condition(test, "CASE/WHEN", branch.this))
            else:
                tests.append(_compare("=", subject, test, branch.this))
            values.append(self.bind(branch.args["true"]))
        default = node.args.get("default")
        values.append(Untyped(None, node) if default is None else self.bind(default))
        # For PostgreSQL the ELSE comes first when it looks for the common type.
        last, *branches = unified([values[-1], *values[:-1]], "CASE", node)
        pairs = [part for pair in zip(tests, branches, strict=True) for part in pair]
        return call("case", *pairs, last)

    def _cast(self, node: exp.Cast) -> Bound:
        bound = self.bind(node.this)
        if isinstance(bound, Untyped):
            target = named_type(node.args["to"], None)
            literal = typed(bound, target)
            return _fitted(literal, target)
        target = named_type(node.args["to"], bound.type)
        if target.is_text:
            target = replace(target, ordered=bound.type.is_text and bound.type.ordered)
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
        return cast(scalar, replace(scalar.type, ordered=True))

    def _call(self, node: exp.Anonymous, only: Scalar | None) -> Bound:
        """A function by its name; `only` is the condition of an aggregate's FILTER."""
        name = name_of(node.this)
        if Aggregates.knows(name):
            if self.aggregates is None:
                message = f"aggregate functions are not allowed in {self.clause}"
                raise refuse("invalid-query", message, node)
            return self.aggregates.call(node, name, self._argument(node, name), only)
        if only is not None:
            raise refuse("invalid-query", f"FILTER is not allowed after {name}", node)
        if any(isinstance(argument, exp.Star) for argument in node.expressions):
            raise refuse("invalid-query", f"{name}(*) is not an aggregate", node)
        arguments = [self.bind(argument) for argument in node.expressions]
        return _named_call(name, arguments, node)

    def _argument(self, node: exp.Anonymous, name: str) -> Scalar | None:
        if len(node.expressions) != 1:
            raise refuse("invalid-query", f"{name} takes one argument", node)
        (argument,) = node.expressions
        if isinstance(argument, exp.Star):
            return None
        inside = replace(self, clause=f"the argument of {name}", aggregates=None)
        return settled(inside.bind(argument))

    def _filtered(self, node: exp.Filter) -> Bound:
        if not isinstance(node.this, exp.Anonymous):
            raise refuse("unsupported-query", "FILTER is not maintained here", node)
        inside = replace(self, clause="FILTER", aggregates=None)
        return self._call(node.this, inside.condition(node.args["expression"].this))


def _named_call(name: str, arguments: Sequence[Bound], node: exp.Anonymous) -> Scalar:
    with located(node):
        if name == UNARY_PLUS:
            (value,) = (settled(argument) for argument in arguments)
            if value.type.is_number:
                return cast(value, undeclared(value.type))
        if name == "coalesce" and arguments:
            return call("coalesce", *unified(arguments, "COALESCE", node))
        if name == "nullif" and len(arguments) == 2:
            return _null_if(*arguments, node)
        function = CALLABLE.get(name)
        if function is None:
            raise refuse_call(name, node)
        if len(arguments) != function.arity:
            message = f"{name} takes {function.arity} arguments, not {len(arguments)}"
            raise refuse("invalid-query", message, node)
        if len(arguments) == 2:
            return call(function.row, *operands(*arguments))
        return call(function.row, *(settled(argument) for argument in arguments))


def _repeatable(bound: Bound, times: int) -> Bound:
    """An operand that the plan will hold so many times; nested repetition multiplies."""
    if isinstance(bound, Untyped):
        return bound
    size = sum(1 for _ in islice(walk(bound), LARGEST_REPEATED + 1))
    if size > 1 and size * times > LARGEST_REPEATED:
        raise too_deep()
    return bound


def _null_if(left: Bound, right: Bound, node: exp.Expr) -> Scalar:
    first, second = operands(left, right)
    result = first_of_nullif(first, second, node, bare=isinstance(right, Untyped))
    if {first.type.kind, second.type.kind} != {"date", "timestamp"}:
        return call("nullif", result, second)
    return call("case", _compare("=", first, second, node), Literal(None, result.type), result)


def _not(scalar: Scalar) -> Scalar:
    return Call("not", (scalar,), BOOLEAN)


def _is_character(bound: Bound) -> bool:
    return not isinstance(bound, Untyped) and bound.type.kind == "character"


def _compare(name: str, left: Bound, right: Bound, node: exp.Expr) -> Scalar:
    first, second = compared(left, right)
    if name in _ORDERING:
        for side in (first, second):
            if side.type.is_text and not side.type.ordered:
                raise refuse(
                    "text-order",
                    f"{name} on text needs collation C",
                    node,
                    'Write COLLATE "C" after the text, or declare the column so.',
                )
    with located(node):
        return call(name, first, second)


def _fitted(literal: Literal, target: Type) -> Scalar:
    """A typed constant brought to the digits or the length that the cast names."""
    if target.is_text:
        target = replace(target, ordered=False)
        return cast(literal, target) if literal.value is not None else Literal(None, target)
    if target.kind == "numeric" and target.declared:
        return cast(literal, target)
    return literal


def balanced(name: str, terms: Sequence[Scalar]) -> Scalar:
    """The terms joined by AND or OR in their order, as a tree of least depth."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return Call(name, (balanced(name, terms[:half]), balanced(name, terms[half:])), BOOLEAN)
