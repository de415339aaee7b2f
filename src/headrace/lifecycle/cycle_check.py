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
from headrace.lifecycle.cycle_members import Circle, Name, shown
from headrace.lifecycle.drift import fulfil
from headrace.lifecycle.name_resolver import NameResolver, find_inputs
from headrace.lifecycle.names import parse_name
from headrace.lifecycle.planned_table import PlannedTable, could_not_go_on
from headrace.lifecycle.table_spec import READER, TableSpec, Wishes, read_tables
from headrace.publish.replace import reshape
from headrace.publish.served import create_served
from headrace.query import bind_columns, first_names
from headrace.relations.definition import InputSchema, rules_of
from headrace.source.collation import home_collation
from headrace.statements.nonrecursive_term import beginning, first_branch
from headrace.store import Pin
from headrace.types import Type

Columns = tuple[OutputColumn, ...]
# These say themselves whose fault it is.
ABOUT_CYCLES = ("unstratifiable", "invalid-option")


def check_cycle(
    reach: NameResolver,
    state: State,
    wishes: Wishes,
    reads: Mapping[Name, frozenset[Name]],
    moved: Mapping[str, str],
    search_path: tuple[str, ...],
    *,
    stratified: bool,
) -> tuple[PlannedTable, ...]:
    """The makings of all tables of a cycle, or UserError; `reads` is who reads whom among them.

    Their served tables are made in the transaction at home, for others to be described over.
    Not `stratified` is about cycles that somebody asks for, not those made anew as they were.
    """
    stratified |= all(wish.request is None for wish in wishes.values())
    relations = {name: new_relation_id() for name in wishes}
    follows = {w.old.relation: relations[n] for n, w in wishes.items() if w.old is not None}
    checking = _Checking(
        reach,
        state,
        wishes,
        Circle(reads, relations, stratified),
        {**moved, **follows},
        search_path,
    )
    # A table whose query stays begins with the columns that it has; if these do not stay, it
    # begins as the others do.
    present = {name for name, wish in wishes.items() if wish.request is None}
    while True:
        try:
            with reach.home.transaction():
                return checking.makings(frozenset(present))
        except _Changed as found:
            if found.name not in present:
                raise _changed(found) from None
            present.remove(found.name)


class _Changed(Exception):
    """A table's columns when the cycle closes are not those that it began with."""

    def __init__(self, name: Name, before: Columns, after: Columns) -> None:
        super().__init__(name)
        self.name, self.before, self.after = name, before, after


def _changed(found: _Changed) -> UserError:
    pairs = zip(found.before, found.after, strict=False)
    before, after = next((b, a) for b, a in pairs if b != a)
    if before.name != after.name:
        detail = f"It begins with column {before.name} and has column {after.name} overall."
        hint = "Let the branch that begins stand first, and name its columns with AS."
    else:
        first, then = before.served, after.served
        hint = f"Cast it to {then} in the part that begins."
        if first == then:
            first, then = (f"numeric with {one.type.scale} digits" for one in (before, after))
            hint = "Cast it to the same numeric(p, s) in all parts."
        detail = f"Column {before.name} is {first} in the part that begins, {then} overall."
    return UserError(
        "cycle-columns",
        f"the columns of stream table {shown(found.name)} change when its cycle closes",
        detail=detail,
        hint=hint,
    )


@dataclass(frozen=True)
class _Checking:
    """One cycle about to be made; `moved` has the new relations of its tables, too."""

    reach: NameResolver
    state: State
    wishes: Wishes
    circle: Circle
    moved: Mapping[str, str]
    search_path: tuple[str, ...]

    def makings(self, present: frozenset[Name]) -> tuple[PlannedTable, ...]:
        """All makings; those named in `present` begin with the columns they have."""
        known: dict[Name, StreamTable] = {}
        for name in present:
            old = self.wishes[name].old
            assert old is not None
            self._enter(known, name, old.columns)
        while len(known) < len(self.wishes):
            waiting = [name for name in self.wishes if name not in known]
            for name in waiting:
                columns = self._beginning(name, known, waiting)
                if columns is not None:
                    self._enter(known, name, columns)
                    break
            else:
                raise no_beginning(waiting)
        return self._closed(known)

    def _closed(self, known: dict[Name, StreamTable]) -> tuple[PlannedTable, ...]:
        """The makings over each other; an order of text that is lost on the way round is lost."""
        while True:
            state = self._with(known)
            found: dict[Name, PlannedTable] = {}
            for name in self.wishes:
                found[name] = self._fulfil(state, name)
                # One that reads the same table reads the same source.
                state = state.with_origins(found[name].sources)
            same = True
            for name, making in found.items():
                before, after = known[name].columns, making.table.columns
                if tuple(map(_in_any_order, before)) != tuple(map(_in_any_order, after)):
                    raise _Changed(name, before, after)
                less = tuple(map(_less_ordered, before, after))
                same &= less == before
                known[name] = replace(known[name], columns=less)
            if same:
                return tuple(found.values())

    def _fulfil(self, state: State, name: Name) -> PlannedTable:
        wish = self.wishes[name]
        try:
            return fulfil(
                self.reach,
                state,
                wish,
                self.moved,
                self.search_path,
                relation=self.circle.relations[name],
                circle=self.circle,
            )
        except UserError as error:
            if wish.old is None or wish.reason != READER or error.code in ABOUT_CYCLES:
                raise
            read = ", ".join(sorted(map(shown, self.circle.reads[name])))
            raise could_not_go_on(wish.old, read, error) from error

    def _beginning(
        self, name: Name, known: Mapping[Name, StreamTable], waiting: Sequence[Name]
    ) -> Columns | None:
        """The columns of what a query gives without the tables that wait; None if that is none."""
        text, path = _query(self.wishes[name], self.search_path)
        state = self._with(known)
        tables = {(t.schema, t.name) for t in state.stream_tables} | self.wishes.keys()

        def reads_unknown(part: str) -> bool:
            read = read_tables(self.reach.home, part, path, tables)
            return not read.isdisjoint(waiting)

        begun = beginning(text, reads_unknown)
        if begun is None:
            return None
        described = self.reach.describe(begun, path)
        found = find_inputs(self.reach, state, begun, path)
        wish = self.wishes[name]
        options = wish.request.options if wish.request is not None else _old(wish).options
        rules = rules_of(home_collation(self.reach.home), options)
        schema = InputSchema.of(found.inputs, found.views, state, path, rules)
        bound = bind_columns(begun, schema, rules)
        names = first_names(first_branch(text)) or tuple(name for name, _ in bound)
        return tuple(
            OutputColumn(name, type_, column.declared)
            for name, (_, type_), column in zip(names, bound, described, strict=True)
        )

    def _enter(self, known: dict[Name, StreamTable], name: Name, columns: Columns) -> None:
        """Let the others read a table with these columns, here and in PostgreSQL."""
        old, request = self.wishes[name].old, self.wishes[name].request
        relation = self.circle.relations[name]
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
            create_served(self.reach.home, table)
        else:
            reshape(self.reach.home, old, table)
        known[name] = table

    def _with(self, known: Mapping[Name, StreamTable]) -> State:
        """The state with tables that are known, in the place of those that they replace."""
        gone = [w.old.relation for w in self.wishes.values() if w.old is not None]
        relations = [_relation(table) for table in known.values()]
        return self.state.with_origins(known.values(), gone).with_relations(relations)


def _relation(table: StreamTable) -> Relation:
    columns = tuple((f"c{number}", c.type) for number, c in enumerate(table.columns, 1))
    return Relation(table.relation, columns, tuple(name for name, _ in columns), Pin(0, 0))


def _query(wish: TableSpec, search_path: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    if wish.request is not None:
        return wish.request.query, search_path
    return _old(wish).query, _old(wish).search_path


def _old(wish: TableSpec) -> StreamTable:
    assert wish.old is not None
    return wish.old


def _in_any_order(column: OutputColumn) -> OutputColumn:
    """A column whatever its collation, which can differ where the types are the same."""
    return replace(column, type=_collated(column.type, Type("text")))


def _less_ordered(one: OutputColumn, other: OutputColumn) -> OutputColumn:
    return replace(one, type=_collated(one.type, one.type, other.type))


def _collated(type_: Type, *like: Type) -> Type:
    """The type with the collation that all of these have."""
    if type_.element is not None:
        elements = (one.element or one for one in like)
        return replace(type_, element=_collated(type_.element, *elements))
    ordered, folds = (all(one.ordered for one in like), all(one.folds for one in like))
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
