"""Checking tables that read each other: together, before any of them exists.

Each has to have columns before the others can be bound to it. They begin with what can be known
alone, and what they come to when the cycle closes must be the same:

    columns(t) = columns of t's beginning, over tables whose columns are known
    columns(t) = columns of t's query over all of them
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from headrace.catalog import State, new_relation_id
from headrace.catalog.records import OutputColumn, Relation, StreamTable
from headrace.errors import UserError
from headrace.lifecycle.cycle_members import CycleMembers, Name, shown
from headrace.lifecycle.drift import plan_spec
from headrace.lifecycle.name_resolver import NameResolver, find_inputs
from headrace.lifecycle.names import parse_name
from headrace.lifecycle.planned_table import PlannedTable, reader_would_fail
from headrace.lifecycle.table_spec import READER, TableSpec, TableSpecs, read_tables
from headrace.publish.replace import reshape
from headrace.publish.served import create_served
from headrace.query import bind_columns, first_names
from headrace.relations.definition import InputSchema, rules_of
from headrace.source.server import home_collation
from headrace.statements.nonrecursive_term import beginning, first_branch
from headrace.store import Pin
from headrace.types import Type

Columns = tuple[OutputColumn, ...]
# Errors with these codes name the table at fault themselves.
ABOUT_CYCLES = ("unstratifiable", "invalid-option")


def check_cycle(
    resolver: NameResolver,
    state: State,
    specs: TableSpecs,
    reads: Mapping[Name, frozenset[Name]],
    moved: Mapping[str, str],
    search_path: tuple[str, ...],
    *,
    stratified: bool,
) -> tuple[PlannedTable, ...]:
    """Plan all tables of a cycle, or raise UserError; `reads` says who reads whom among them.

    Their served tables are made in the transaction at home, for others to be described over.
    Not `stratified` concerns requested cycles, not those that are rebuilt as they were.
    """
    stratified |= all(spec.request is None for spec in specs.values())
    relations = {name: new_relation_id() for name in specs}
    follows = {w.old.relation: relations[n] for n, w in specs.items() if w.old is not None}
    checking = _Checking(
        resolver,
        state,
        specs,
        CycleMembers(reads, relations, stratified),
        {**moved, **follows},
        search_path,
    )
    # A table whose query stays begins with the columns that it has; if these do not stay, it
    # begins as the others do.
    present = {name for name, spec in specs.items() if spec.request is None}
    while True:
        try:
            with resolver.home.transaction():
                return checking.planned_tables(frozenset(present))
        except _Changed as change:
            if change.name not in present:
                raise _changed(change) from None
            present.remove(change.name)


class _Changed(Exception):
    """A table's columns differ between its beginning and the closed cycle."""

    def __init__(self, name: Name, before: Columns, after: Columns) -> None:
        super().__init__(name)
        self.name, self.before, self.after = name, before, after


def _changed(change: _Changed) -> UserError:
    pairs = zip(change.before, change.after, strict=False)
    before, after = next((b, a) for b, a in pairs if b != a)
    if before.name != after.name:
        detail = f"It begins with column {before.name} and has column {after.name} overall."
        hint = "Let the branch that begins stand first, and name its columns with AS."
    else:
        first, then = before.served, after.served
        hint = f"Cast it to {then} in the part that begins."
        if first == then:
            first, then = (f"numeric with {column.type.scale} digits" for column in (before, after))
            hint = "Cast it to the same numeric(p, s) in all parts."
        detail = f"Column {before.name} is {first} in the part that begins, {then} overall."
    return UserError(
        "cycle-columns",
        f"the columns of stream table {shown(change.name)} change when its cycle closes",
        detail=detail,
        hint=hint,
    )


@dataclass(frozen=True)
class _Checking:
    """One planned cycle; `moved` has the new relations of its tables, too."""

    resolver: NameResolver
    state: State
    specs: TableSpecs
    cycle_members: CycleMembers
    moved: Mapping[str, str]
    search_path: tuple[str, ...]

    def planned_tables(self, present: frozenset[Name]) -> tuple[PlannedTable, ...]:
        """Return all planned tables; those named in `present` begin with the columns they have."""
        entered: dict[Name, StreamTable] = {}
        for name in present:
            old = self.specs[name].old
            assert old is not None
            self._enter(entered, name, old.columns)
        while len(entered) < len(self.specs):
            waiting = [name for name in self.specs if name not in entered]
            for name in waiting:
                columns = self._beginning(name, entered, waiting)
                if columns is not None:
                    self._enter(entered, name, columns)
                    break
            else:
                raise no_beginning(waiting)
        return self._closed(entered)

    def _closed(self, entered: dict[Name, StreamTable]) -> tuple[PlannedTable, ...]:
        """Return the tables bound to each other; drop an order of text that the cycle loses."""
        while True:
            state = self._with(entered)
            planned_by_name: dict[Name, PlannedTable] = {}
            for name in self.specs:
                planned_by_name[name] = self._plan_member(state, name)
                # The next members that read the same table have to read the same source.
                state = state.with_origins(planned_by_name[name].sources)
            same = True
            for name, planned in planned_by_name.items():
                before, after = entered[name].columns, planned.table.columns
                if tuple(map(_in_any_order, before)) != tuple(map(_in_any_order, after)):
                    raise _Changed(name, before, after)
                less = tuple(map(_less_ordered, before, after))
                same &= less == before
                entered[name] = replace(entered[name], columns=less)
            if same:
                return tuple(planned_by_name.values())

    def _plan_member(self, state: State, name: Name) -> PlannedTable:
        spec = self.specs[name]
        try:
            return plan_spec(
                self.resolver,
                state,
                spec,
                self.moved,
                self.search_path,
                relation=self.cycle_members.relations[name],
                cycle_members=self.cycle_members,
            )
        except UserError as error:
            if spec.old is None or spec.reason != READER or error.code in ABOUT_CYCLES:
                raise
            read = ", ".join(sorted(map(shown, self.cycle_members.reads[name])))
            raise reader_would_fail(spec.old, read, error) from error

    def _beginning(
        self, name: Name, entered: Mapping[Name, StreamTable], waiting: Sequence[Name]
    ) -> Columns | None:
        """Return the columns of a query without the waiting tables; None if no branch is left."""
        text, path = _query(self.specs[name], self.search_path)
        state = self._with(entered)
        tables = {(t.schema, t.name) for t in state.stream_tables} | self.specs.keys()

        def reads_unknown(part: str) -> bool:
            read = read_tables(self.resolver.home, part, path, tables)
            return not read.isdisjoint(waiting)

        begun = beginning(text, reads_unknown)
        if begun is None:
            return None
        described = self.resolver.describe(begun, path)
        query_inputs = find_inputs(self.resolver, state, begun, path)
        spec = self.specs[name]
        options = spec.request.options if spec.request is not None else _old(spec).options
        rules = rules_of(home_collation(self.resolver.home), options)
        schema = InputSchema.of(query_inputs.inputs, query_inputs.views, state, path, rules)
        bound = bind_columns(begun, schema, rules)
        names = first_names(first_branch(text)) or tuple(name for name, _ in bound)
        return tuple(
            OutputColumn(name, type_, column.declared)
            for name, (_, type_), column in zip(names, bound, described, strict=True)
        )

    def _enter(self, entered: dict[Name, StreamTable], name: Name, columns: Columns) -> None:
        """Let the others read a table with these columns, here and in PostgreSQL."""
        old, request = self.specs[name].old, self.specs[name].request
        relation = self.cycle_members.relations[name]
        if request is None:
            assert old is not None
            table = replace(old, relation=relation, columns=columns, key=())
        else:
            schema, called = parse_name(request.name, self.search_path[0])
            table = StreamTable(
                relation,
                schema,
                called,
                request.query,
                columns,
                inputs=(),
                options=request.options,
            )
        if old is None:
            create_served(self.resolver.home, table)
        else:
            reshape(self.resolver.home, old, table)
        entered[name] = table

    def _with(self, entered: Mapping[Name, StreamTable]) -> State:
        """Return the state with the entered tables, in the place of those that they replace."""
        gone = [w.old.relation for w in self.specs.values() if w.old is not None]
        relations = [_relation(table) for table in entered.values()]
        return self.state.with_origins(entered.values(), gone).with_relations(relations)


def _relation(table: StreamTable) -> Relation:
    columns = tuple((f"c{number}", c.type) for number, c in enumerate(table.columns, 1))
    return Relation(table.relation, columns, tuple(name for name, _ in columns), Pin(0, 0))


def _query(spec: TableSpec, search_path: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    if spec.request is not None:
        return spec.request.query, search_path
    return _old(spec).query, _old(spec).search_path


def _old(spec: TableSpec) -> StreamTable:
    assert spec.old is not None
    return spec.old


def _in_any_order(column: OutputColumn) -> OutputColumn:
    """Return a column whatever its collation, which can differ where the types are the same."""
    return replace(column, type=_collated(column.type, Type("text")))


def _less_ordered(column: OutputColumn, other: OutputColumn) -> OutputColumn:
    return replace(column, type=_collated(column.type, column.type, other.type))


def _collated(type_: Type, *like: Type) -> Type:
    """Return the type with the collation that all of these have."""
    if type_.element is not None:
        elements = (like_type.element or like_type for like_type in like)
        return replace(type_, element=_collated(type_.element, *elements))
    ordered, folds = (
        all(like_type.ordered for like_type in like),
        all(like_type.folds for like_type in like),
    )
    return replace(type_, ordered=ordered, folds=folds)


def no_beginning(waiting: Sequence[Name]) -> UserError:
    names = ", ".join(map(shown, waiting))
    others, their = ("the others", "their") if len(waiting) > 1 else ("itself", "its")
    return UserError(
        "cycle-columns",
        f"no part of {names} can be computed without {others}, so {their} columns have no types",
        hint="Begin one of them with a branch that reads only tables outside of the cycle:"
        " SELECT … UNION SELECT …; it may give no rows.",
    )
