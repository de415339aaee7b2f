"""Which query of WITH a name in FROM means."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from headrace.query.identifiers import name_of, table_name


def defined_by_with(table: exp.Table) -> exp.CTE | None:
    """The query of WITH that the table's name means where it stands."""
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
    """The definitions that are seen from a part of the query.

    A definition sees the ones before it; if the WITH is recursive all, and itself among them.
    """
    defined: list[exp.CTE] = list(with_.expressions)
    if with_.args.get("recursive"):
        return defined
    places = [i for i, cte in enumerate(defined) if cte is inside]
    return defined[: places[0]] if places else defined


def named_tables(node: exp.Expr) -> Iterator[exp.Table]:
    """The names in FROM anywhere inside the node, in the order of the text."""
    for table in node.find_all(exp.Table, bfs=False):
        if isinstance(table.this, exp.Identifier):
            yield table


def self_references(cte: exp.CTE) -> list[exp.Table]:
    """Where a query of WITH names itself."""
    return [table for table in named_tables(cte.this) if defined_by_with(table) is cte]
