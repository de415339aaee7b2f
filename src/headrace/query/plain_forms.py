"""Forms that PostgreSQL prints in views, or that users write, in the plain form that is bound.

| written | bound as |
|---|---|
| `(t).id`, `(t).*` of a table in FROM | `t.id`, `t.*` |
| `pg_catalog.abs(x)` | `abs(x)` |
| `ROWS FROM (f(x))` | `f(x)` |
| `ROWS FROM (unnest(x), unnest(y))` | `unnest(x, y)` |
"""

from __future__ import annotations

from sqlglot import exp

from headrace.query.identifiers import name_of


def with_plain_forms(statement: exp.Expr) -> exp.Expr:
    """Return the statement, itself changed; forms that are not listed stay as they are."""
    for table in list(statement.find_all(exp.Table)):
        call = _only_function(table)
        if call is not None:
            table.set("rows_from", None)
            table.set("this", call)
    for named in list(statement.find_all(exp.Dot, exp.Column)):
        plain = _plain_name(named if isinstance(named, exp.Dot) else _as_dot(named))
        if plain is not None:
            named.replace(plain)
    return statement


def _as_dot(column: exp.Expr) -> exp.Dot | None:
    """A call with FILTER, which sqlglot takes for a column of its schema, as what it is."""
    schema, call = column.args.get("table"), column.this
    if schema is None or isinstance(call, (exp.Identifier, exp.Star)):
        return None
    return exp.Dot(this=schema, expression=call)


def _plain_name(dot: exp.Dot | None) -> exp.Expr | None:
    """What stands for the name; one of another schema stays a name with a dot."""
    if dot is None:
        return None
    match dot.this, dot.args.get("expression"):
        case exp.Paren(this=exp.Column(this=exp.Identifier() as table) as row), (
            exp.Identifier() | exp.Star()
        ) as field if row.args.get("table") is None:
            return exp.Column(this=field, table=table)
        case exp.Identifier() as schema, exp.Expr() as call if name_of(schema) == "pg_catalog":
            return call
    return dot


def _only_function(table: exp.Table) -> exp.Anonymous | None:
    """The one function that ROWS FROM stands for, if there is one."""
    inside = table.args.get("rows_from") or ()
    calls = [one.this for one in inside if isinstance(one, exp.Table) and _is_bare(one)]
    if not calls or len(calls) < len(inside):
        return None
    first: exp.Anonymous = calls[0]
    others = calls[1:]
    if others and any(name_of(c.this) != "unnest" or len(c.expressions) != 1 for c in calls):
        return None
    for other in others:
        first.append("expressions", other.expressions[0])
    return first


def _is_bare(table: exp.Table) -> bool:
    """Whether the item is a call without a schema, an alias or definitions of columns."""
    given = {name for name, value in table.args.items() if value}
    return isinstance(table.this, exp.Anonymous) and given == {"this"}
