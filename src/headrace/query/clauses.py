"""The syntax that a query may have, and the constructs that are refused by name.

The parser knows far more than is maintained, and adds parsed clauses to its nodes as arguments. So
a node that is not in `ACCEPTED`, or has an argument beside those listed there, is refused before
anything is bound.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from headrace.query.dialect import USING_ALIAS
from headrace.query.ordering import ORDERING, is_read
from headrace.query.parse import too_deep
from headrace.query.refusal import refuse

MAXIMUM_DEPTH = 32
"""Levels of nesting in an expression; chains of AND and OR do not count.

Each costs sqlglot's generator about twenty Python frames of the thousand there are by default.
"""

_BINARY = frozenset({"this", "expression"})

ACCEPTED: dict[type[exp.Expr], frozenset[str]] = {
    exp.Select: frozenset({"expressions", "from_", "joins", "where", "group", "having", "order"})
    | {"distinct", "with_", "limit", "offset", "windows"},
    **dict.fromkeys(
        (exp.Union, exp.Intersect, exp.Except),
        frozenset({"this", "expression", "distinct", "order", "with_", "limit", "offset"}),
    ),
    exp.Values: frozenset({"expressions", "alias", "joins"}),
    exp.Subquery: frozenset({"this", "alias", "joins", "order", "with_", "limit", "offset"}),
    **ORDERING,
    exp.With: frozenset({"expressions", "recursive"}),
    # Whether it is computed once or at each use changes nothing in the result.
    exp.CTE: frozenset({"this", "alias", "materialized"}),
    exp.Distinct: frozenset({"on", "expressions"}),
    exp.From: frozenset({"this"}),
    exp.Join: frozenset({"this", "on", "using", "side", "kind", "method", USING_ALIAS}),
    exp.Table: frozenset({"this", "db", "catalog", "alias", "joins", "ordinality"}),
    exp.TableAlias: frozenset({"this", "columns"}),
    exp.Where: frozenset({"this"}),
    exp.Group: frozenset({"expressions"}),
    exp.GroupingSets: frozenset({"expressions"}),
    exp.Rollup: frozenset({"expressions"}),
    exp.Cube: frozenset({"expressions"}),
    exp.WithinGroup: _BINARY,
    exp.Having: frozenset({"this"}),
    exp.Alias: frozenset({"this", "alias"}),
    exp.Star: frozenset(),
    exp.Column: frozenset({"this", "table", "db"}),
    exp.Identifier: frozenset({"this", "quoted"}),
    exp.Literal: frozenset({"this", "is_string"}),
    exp.Boolean: frozenset({"this"}),
    exp.Null: frozenset(),
    exp.Paren: frozenset({"this"}),
    exp.And: _BINARY,
    exp.Or: _BINARY,
    exp.Not: frozenset({"this"}),
    exp.Is: _BINARY | {"negate"},
    exp.NullSafeEQ: _BINARY,
    exp.NullSafeNEQ: _BINARY,
    exp.EQ: _BINARY,
    exp.NEQ: _BINARY,
    exp.LT: _BINARY,
    exp.LTE: _BINARY,
    exp.GT: _BINARY,
    exp.GTE: _BINARY,
    exp.Between: frozenset({"this", "low", "high"}),
    exp.In: frozenset({"this", "expressions", "query"}),
    exp.Exists: frozenset({"this"}),
    exp.All: frozenset({"this"}),
    exp.Tuple: frozenset({"expressions"}),
    exp.Lateral: frozenset({"this", "alias", "ordinality", "joins"}),
    exp.Like: _BINARY | {"negate"},
    exp.ILike: _BINARY | {"negate"},
    exp.SimilarTo: _BINARY,
    exp.Escape: _BINARY,
    exp.RegexpLike: _BINARY,
    exp.RegexpILike: _BINARY,
    exp.Substring: frozenset({"this", "start", "length"}),
    exp.Trim: frozenset({"this", "expression", "position"}),
    exp.StrPosition: frozenset({"this", "substr"}),
    exp.Extract: _BINARY,
    exp.AtTimeZone: frozenset({"this", "zone"}),
    exp.StartsWith: _BINARY,
    exp.Sqrt: frozenset({"this"}),
    exp.Interval: frozenset({"this", "unit"}),
    exp.Var: frozenset({"this"}),
    exp.JSONExtract: _BINARY,
    exp.JSONExtractScalar: _BINARY,
    exp.JSONBExtract: _BINARY,
    exp.JSONBExtractScalar: _BINARY,
    exp.BitwiseAnd: _BINARY,
    exp.BitwiseOr: _BINARY,
    exp.BitwiseXor: _BINARY,
    exp.BitwiseNot: frozenset({"this"}),
    exp.BitwiseRightShift: _BINARY,
    # `safe` and `typed` inform sqlglot's own generators about other dialects.
    exp.DPipe: _BINARY | {"safe"},
    exp.Add: _BINARY,
    exp.Sub: _BINARY,
    exp.Mul: _BINARY,
    exp.Div: _BINARY | {"safe", "typed"},
    exp.Mod: _BINARY,
    exp.Neg: frozenset({"this"}),
    exp.Collate: _BINARY,
    exp.Case: frozenset({"this", "ifs", "default"}),
    exp.If: frozenset({"this", "true"}),
    exp.Cast: frozenset({"this", "to"}),
    exp.DataType: frozenset({"this", "expressions", "nested", "kind"}),
    exp.DataTypeParam: frozenset({"this"}),
    exp.Anonymous: frozenset({"this", "expressions"}),
    exp.Filter: _BINARY,
    exp.Any: frozenset({"this"}),
    exp.Array: frozenset({"expressions"}),
    exp.Bracket: frozenset({"this", "expressions"}),
    exp.ArrayContainsAll: _BINARY,
    exp.ArrayContainedBy: _BINARY,
    exp.ArrayOverlaps: _BINARY,
}


@dataclass(frozen=True)
class Refused:
    """A construct that is not maintained: its name, and the alternative if there is one."""

    name: str
    hint: str | None = None
    code: str = "unsupported-query"


_CLOCK_HINT = (
    "The result would change without any change of the data. Keep the time column in the stream"
    " table and compare it with the clock when you read it."
)
CLOCK = Refused("the current time", _CLOCK_HINT, "unsupported-function")
SESSION = Refused(
    "a value of the session",
    "The result would depend on who asks. Compare with it when you read the stream table.",
    "unsupported-function",
)
# Reserved words that PostgreSQL reads as functions and sqlglot as names of columns.
SESSION_WORDS = frozenset({"current_role", "system_user", "user"})
_STRING = Refused("a string with a prefix", "Write it as a plain string in single quotes.")

REFUSED_NODES: dict[type[exp.Expr], Refused] = {
    exp.Slice: Refused("a slice of an array", None, "unsupported-function"),
    exp.Dot: Refused("a name with dots", "Write the name without its schema."),
    exp.Pow: Refused("^", "Multiply instead.", "unsupported-function"),
    exp.BitwiseLeftShift: Refused("<<", "Multiply instead.", "unsupported-function"),
    exp.Overlay: Refused(
        "OVERLAY", "Write it with left, || and substring.", "unsupported-function"
    ),
    exp.Overlaps: Refused("OVERLAPS", "Compare the ends of the periods."),
    exp.IntervalSpan: Refused("an interval with fields", "Write the units inside of its text."),
    exp.Parameter: Refused("a parameter", "Write the value into the query."),
    exp.Placeholder: Refused("a parameter", "Write the value into the query."),
    exp.Concat: Refused("a string in several parts", "Write it as one string."),
    exp.ByteString: _STRING,
    exp.UnicodeString: _STRING,
    exp.RawString: Refused("a dollar-quoted string", _STRING.hint),
    exp.National: _STRING,
    exp.BitString: Refused("a bit string", None, "unsupported-type"),
    exp.HexString: Refused("a hexadecimal constant", "Write it with decimal digits."),
    exp.CurrentDate: CLOCK,
    exp.CurrentTime: CLOCK,
    exp.CurrentTimestamp: CLOCK,
    exp.Localtime: CLOCK,
    exp.Localtimestamp: CLOCK,
    exp.CurrentUser: SESSION,
    exp.SessionUser: SESSION,
    exp.CurrentSchema: SESSION,
    exp.CurrentCatalog: SESSION,
}
REFUSED_ARGUMENTS: dict[tuple[type[exp.Expr], str], Refused] = {
    (exp.Union, "by_name"): Refused("UNION BY NAME"),
    (exp.With, "search"): Refused("SEARCH or CYCLE", "Carry a column with the path yourself."),
    (exp.Select, "locks"): Refused("FOR UPDATE", "A stream table reads without row locks."),
    (exp.Select, "into"): Refused("SELECT INTO", "The stream table's name says where rows go."),
    (exp.Table, "only"): Refused("ONLY", "Name the table that holds the rows."),
    (exp.Table, "sample"): Refused("TABLESAMPLE", "Sample when you read the stream table."),
    (exp.Table, "rows_from"): Refused(
        "ROWS FROM of several functions", "Join them WITH ORDINALITY on their numbers."
    ),
    (exp.Between, "symmetric"): Refused("BETWEEN SYMMETRIC", "Write both orders with OR."),
    (exp.Group, "all"): Refused("GROUP BY ALL", "Name the grouping columns."),
}


MISPLACED: tuple[tuple[type[exp.Expr], tuple[type[exp.Expr], ...], Refused], ...] = (
    (exp.Distinct, (exp.Select, exp.Anonymous, exp.Order), Refused("DISTINCT here")),
    (
        exp.Any,
        (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE),
        Refused("ANY", "Compare with it directly."),
    ),
)
"""What is accepted only directly below some nodes, as a query is in FROM."""


def check_clauses(query: exp.Expr) -> None:
    """Refuse all that the binder would not read; an order that decides nothing is left alone."""
    stack: list[tuple[exp.Expr, int]] = [(query, 0)]
    while stack:
        node, depth = stack.pop()
        accepted = ACCEPTED.get(type(node))
        if accepted is None:
            raise _refusal(node, REFUSED_NODES.get(type(node)))
        for kind, places, refused in MISPLACED:
            if isinstance(node, kind) and not isinstance(node.parent, (*places, type(None))):
                raise _refusal(node, refused)
        for name, value in node.args.items():
            # sqlglot fills arguments that were not written with None, False or an empty list.
            if value and name not in accepted:
                refused_argument = REFUSED_ARGUMENTS.get((type(node), name))
                at = value if isinstance(value, exp.Expr) else node
                raise _refusal(at, refused_argument or Refused(f"{node.key.upper()} with {name}"))
        if depth > MAXIMUM_DEPTH:
            raise too_deep()
        children = [child for child in node.iter_expressions() if is_read(child)]
        stack.extend((child, _depth(node, child, depth)) for child in reversed(children))


def _depth(node: exp.Expr, child: exp.Expr, depth: int) -> int:
    """Return the depth of a child.

    A query counts its own expressions; a link of a chain is as deep as the link before.
    """
    if isinstance(child, exp.Query):
        return 0
    return depth + (not (isinstance(node, (exp.And, exp.Or)) and type(child) is type(node)))


def _refusal(node: exp.Expr, refused: Refused | None) -> Exception:
    refused = refused or Refused(node.key.upper().replace("_", " "), None, "unsupported-function")
    return refuse(refused.code, f"{refused.name} is not maintained", node, refused.hint)
