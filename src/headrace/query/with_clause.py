"""WITH and WITH RECURSIVE: the names they define, and the rules for a query that names itself.

PostgreSQL's rules, in its words: a recursive query is `non-recursive-term UNION [ALL]
recursive-term`, and names itself once, in the recursive term:

| not inside of | because |
|---|---|
| a subquery of an expression | it would be read as a whole |
| the side of an outer join that is padded | an inserted row would remove another |
| the right side of EXCEPT, any side of EXCEPT ALL or INTERSECT ALL | the same, or by counts |
| a SELECT that computes aggregates | but its rows may be those of an inner query |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter

from sqlglot import exp

from headrace.query.context import Context, Defined, WorkingTable
from headrace.query.identifiers import name_of, table_name
from headrace.query.refusal import refuse


def defined_by_with(table: exp.Table) -> exp.CTE | None:
    """Return the query of WITH that the table's name means where it stands."""
    schema, name = table_name(table)
    inside: exp.Expr = table
    while schema is None and inside.parent is not None:
        outer = inside.parent
        with_ = outer if isinstance(outer, exp.With) else outer.args.get("with_")
        if isinstance(with_, exp.With) and with_ is not inside:
            for cte in reversed(_visible(with_, inside)):
                if name_of(cte.args["alias"].this) == name:
                    return cte
        inside = outer
    return None


def _visible(with_: exp.With, inside: exp.Expr) -> list[exp.CTE]:
    """Return the definitions that are seen from a part of the query.

    A definition sees the ones before it; if the WITH is recursive all, and itself among them.
    """
    defined: list[exp.CTE] = list(with_.expressions)
    if with_.args.get("recursive"):
        return defined
    places = [i for i, cte in enumerate(defined) if cte is inside]
    return defined[: places[0]] if places else defined


def named_tables(node: exp.Expr) -> Iterator[exp.Table]:
    """Return the names in FROM anywhere inside the node, in the order of the text."""
    for table in node.find_all(exp.Table, bfs=False):
        if isinstance(table.this, exp.Identifier):
            yield table


def self_references(cte: exp.CTE) -> list[exp.Table]:
    """Return where a query of WITH names itself."""
    return [table for table in named_tables(cte.this) if defined_by_with(table) is cte]


_BEHIND = {"order": "ORDER BY", "offset": "OFFSET", "limit": "LIMIT"}
# A query below one of these is a part of FROM, of a set operation or of WITH, not of an expression.
_AROUND_QUERIES = (
    exp.From,
    exp.Join,
    exp.Lateral,
    exp.Subquery,
    exp.SetOperation,
    exp.CTE,
    exp.Table,
)


def check_recursion(with_: exp.With) -> None:
    """Refuse queries of a recursive WITH that PostgreSQL refuses for how they name each other."""
    _require_no_cycle(with_)
    for cte in with_.expressions:
        references = self_references(cte)
        if references:
            _check(cte, references)


def recursive_union(cte: exp.CTE) -> exp.Union | None:
    """Return the operation whose right side is the recursive term.

    Parentheses around it do not count.
    """
    body = cte.this
    while isinstance(body, exp.Subquery):
        body = body.this
    return body if isinstance(body, exp.Union) else None


def require_no_working_table(select: exp.Select, context: Context) -> None:
    """Refuse aggregates beside a recursive query's own name."""
    for table in _own_tables(select):
        schema, name = table_name(table)
        if schema is None and isinstance(context.defined.get(name), WorkingTable):
            message = "aggregate functions are not allowed in a recursive query's recursive term"
            hint = "Aggregate the rows of an inner query in FROM."
            raise refuse("invalid-query", message, table, hint)


def _own_tables(select: exp.Select) -> Iterator[exp.Table]:
    """Return the names in FROM of the block itself, not of queries inside."""
    for table in named_tables(select):
        inside = table.parent
        while inside is not select and not isinstance(inside, exp.Select):
            assert inside is not None
            inside = inside.parent
        if inside is select:
            yield table


def _require_no_cycle(with_: exp.With) -> None:
    places = {id(cte): i for i, cte in enumerate(with_.expressions)}
    reads: dict[int, set[int]] = {}
    for i, cte in enumerate(with_.expressions):
        defined = (defined_by_with(table) for table in named_tables(cte.this))
        reads[i] = {places[id(d)] for d in defined if d is not None and id(d) in places} - {i}
    try:
        TopologicalSorter(reads).prepare()
    except CycleError as error:
        cycle: list[int] = error.args[1]
        message = "mutual recursion between WITH items is not implemented"
        hint = "Make them stream tables that read each other."
        raise refuse("invalid-query", message, with_.expressions[cycle[0]], hint) from None


def _check(cte: exp.CTE, references: list[exp.Table]) -> None:
    name = name_of(cte.args["alias"].this)
    union = recursive_union(cte)
    if union is None:
        form = "the form non-recursive-term UNION [ALL] recursive-term"
        raise refuse("invalid-query", f'recursive query "{name}" does not have {form}', cte)
    for reference in references:
        place = _wrong_place(reference, union)
        if place is not None:
            message = f'recursive reference to query "{name}" must not appear within {place}'
            raise refuse("invalid-query", message, reference)
    if len(references) > 1:
        message = f'recursive reference to query "{name}" must not appear more than once'
        raise refuse("invalid-query", message, references[1])
    node: exp.Expr = union
    while node is not cte:
        for argument, clause in _BEHIND.items():
            if node.args.get(argument) is not None:
                message = f"{clause} in a recursive query is not implemented"
                raise refuse("invalid-query", message, node.args[argument])
        assert node.parent is not None
        node = node.parent


def _wrong_place(reference: exp.Table, union: exp.Union) -> str | None:
    """Return the clause that the reference must not stand in; of several, PostgreSQL's choice."""
    place: str | None = None
    node: exp.Expr = reference
    while node is not union:
        parent = node.parent
        assert parent is not None
        if isinstance(node, (exp.Query, exp.Values)) and not isinstance(parent, _AROUND_QUERIES):
            return "a subquery"
        if isinstance(node, exp.With) and parent is union:
            return "a subquery"
        if _is_padded(node, parent):
            place = "an outer join"
        elif isinstance(parent, exp.SetOperation):
            place = _in_set_operation(node, parent, union) or place
        node = parent
    return place


def _in_set_operation(side: exp.Expr, node: exp.SetOperation, union: exp.Union) -> str | None:
    on_left = side is node.this
    every = not node.args.get("distinct")
    match node:
        case exp.Union():
            return "its non-recursive term" if node is union and on_left else None
        case exp.Intersect():
            return "INTERSECT" if every else None
        case _:
            return "EXCEPT" if every or not on_left else None


def _is_padded(item: exp.Expr, around: exp.Expr) -> bool:
    """Return whether an item of FROM is on a side of an outer join that has rows of NULLs."""
    joins: list[exp.Join] = around.args.get("joins") or []
    places = [i for i, join in enumerate(joins) if join is item]
    if not places and not isinstance(item, exp.From) and item is not around.args.get("this"):
        return False
    own = joins[places[0]] if places else None
    if own is not None and own.args.get("side") in ("LEFT", "FULL"):
        return True
    for join in joins[places[0] + 1 if places else 0 :]:
        if not any(join.args.get(name) for name in ("side", "kind", "method", "on", "using")):
            return False
        if join.args.get("side") in ("RIGHT", "FULL"):
            return True
    return False


def with_defined(with_: exp.With, context: Context) -> Context:
    """Return the context behind WITH, with its queries defined.

    Each query sees the ones before it, in a recursive WITH all.
    """
    names: set[str] = set()
    for cte in with_.expressions:
        name = _name(cte)
        if name in names:
            message = f'WITH query name "{name}" specified more than once'
            raise refuse("invalid-query", message, cte.args["alias"])
        names.add(name)
    if not with_.args.get("recursive"):
        for cte in with_.expressions:
            context = context.defining(_name(cte), Defined(cte, context))
        return context
    check_recursion(with_)
    defined: dict[str, Defined | WorkingTable] = dict(context.defined)
    context = replace(context, defined=defined)
    for cte in with_.expressions:
        variable = context.ids.recursion(cte) if self_references(cte) else None
        defined[_name(cte)] = Defined(cte, context, variable)
    return context


def _name(cte: exp.CTE) -> str:
    return name_of(cte.args["alias"].this)
