"""A relational tree as SQL a person could have written.

Operators share a SELECT as long as its clauses allow; then the block becomes a derived table and a
new one starts around it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import count

from fuzz.block import (
    DISTINCT,
    FROM,
    GROUP,
    ORDER,
    WHERE,
    WINDOW,
    Block,
    Texts,
    columns_of,
    has_column,
    is_plain,
    ordered,
)
from fuzz.free import free_names, names_in_queries
from fuzz.from_clause import From
from fuzz.relations import (
    Again,
    Aggregate,
    Distinct,
    Extend,
    Filter,
    Fit,
    Join,
    Named,
    Recursion,
    Relation,
    Scan,
    Series,
    SetOperation,
    TopK,
    Values,
    Window,
)
from fuzz.terms import Query, Ref, Scalar, queries_of
from fuzz.write_from import clause


@dataclass(frozen=True)
class Written:
    """A view as its query, and what has to be created first: (view or stream, name, query)."""

    needed: tuple[tuple[str, str, str], ...]
    query: str


@dataclass
class Writer:
    """Aliases and the named relations of one view."""

    prefix: str
    numbers: count[int] = field(default_factory=lambda: count(1))
    needed: list[tuple[str, str, str]] = field(default_factory=list)
    expressions: list[tuple[str, str]] = field(default_factory=list)
    named: dict[tuple[str, Relation], str] = field(default_factory=dict)

    def statement(self, relation: Relation) -> str:
        """The whole query, with its WITH."""
        outside, self.expressions = self.expressions, []
        remembered = {k: v for k, v in self.named.items() if k[0].endswith("cte")}
        self.named = {k: v for k, v in self.named.items() if k not in remembered}
        block = self.block(relation, {})
        text = self.query(block, relation)
        if self.expressions:
            ctes = ", ".join(f"{name} AS ({query})" for name, query in self.expressions)
            text = f"WITH {ctes} {text}"
        self.expressions = outside
        kept = {k: v for k, v in self.named.items() if not k[0].endswith("cte")}
        self.named = kept | remembered
        return text

    def query(self, block: Block, relation: Relation) -> str:
        return block.select(ref.name for ref in relation.columns)

    def alias(self, letter: str) -> str:
        return f"{letter}{next(self.numbers)}"

    def wrap(self, block: Block, names: Iterable[str]) -> Block:
        """The block as a derived table."""
        names = tuple(names)
        alias = self.alias("q")
        columns = {name: f"{alias}.{name}" for name in names}
        return Block(f"({block.select(names)}) AS {alias}", columns)

    def below(self, relation: Relation, outer: Texts, level: int) -> Block:
        """A block of the relation that can take a clause of that level."""
        block = self.block(relation, outer)
        if block.raw is not None or block.level > level or (block.crowded and level > FROM):
            return self.wrap(block, (ref.name for ref in relation.columns))
        return block

    def side(self, relation: Relation, outer: Texts) -> Block:
        """A block that is nothing but an item of FROM."""
        block = self.below(relation, outer, FROM)
        if block.plain:
            return block
        return self.wrap(block, (ref.name for ref in relation.columns))

    def block(self, relation: Relation, outer: Texts) -> Block:
        match relation:
            case Scan(table=table, fields=fields):
                alias = self.alias("t")
                return Block(f"{table} AS {alias}", columns_of(alias, fields))
            case Values(columns=columns, rows=rows):
                alias = self.alias("v")
                texts = ", ".join(f"({', '.join(self.scalar(s, {}) for s in r)})" for r in rows)
                names = ", ".join(ref.name for ref in columns)
                fields = tuple((ref.name, ref) for ref in columns)
                return Block(f"(VALUES {texts}) AS {alias} ({names})", columns_of(alias, fields))
            case Series():
                return self.series(relation, outer)
            case Filter():
                return self.filter(relation, outer)
            case Extend(child=child, added=added):
                return self.computed(child, child.columns, added, outer)
            case Fit(child=child, outputs=outputs):
                return self.computed(child, (), outputs, outer)
            case Join():
                return self.join(relation, outer)
            case From():
                return clause(self, relation, outer)
            case Aggregate():
                return self.aggregate(relation, outer)
            case Window(child=child, added=added):
                block = self.below(child, outer, GROUP)
                return replace(
                    block,
                    columns={**block.columns, **self.texts(added, {**outer, **block.columns})},
                    level=WINDOW,
                    plain=False,
                )
            case Distinct():
                return self.distinct(relation, outer)
            case TopK():
                return self.topk(relation, outer)
            case SetOperation(word=word, left=left, right=right, names=names):
                first = self.operand(left, outer, names)
                second = self.operand(right, outer, None)
                raw = f"{first} {word} {second}"
                return Block("", {ref.name: ref.name for ref in names}, ORDER, raw=raw)
            case Recursion():
                return self.recursion(relation)
            case Named():
                return self.name(relation, outer)
            case Again(child=child, fields=fields):
                block = self.name(child, outer)
                name = self.named.get((child.form, child.child))
                if name is None:
                    renamed = {ref.name: block.columns[old] for old, ref in fields}
                    return replace(block, columns=renamed)
                alias = self.alias("r")
                return Block(f"{name} AS {alias}", columns_of(alias, fields))

    def scalar(self, scalar: Scalar | Query, texts: Texts) -> str:
        match scalar:
            case Ref(name=name):
                return texts[name]
            case Query(relation=relation, names=names):
                block = self.block(relation, texts)
                whole = tuple(ref.name for ref in relation.columns)
                if names != whole and (block.raw is not None or block.tail or block.distinct):
                    block = self.wrap(block, whole)
                return block.select(names)
        return scalar.text.format(*(self.scalar(part, texts) for part in scalar.parts))

    def texts(self, pairs: Iterable[tuple[Ref, Scalar]], texts: Texts) -> dict[str, str]:
        return {ref.name: self.scalar(scalar, texts) for ref, scalar in pairs}

    def computed(
        self,
        child: Relation,
        kept: tuple[Ref, ...],
        added: tuple[tuple[Ref, Scalar], ...],
        outer: Texts,
    ) -> Block:
        level = GROUP if any(queries_of(scalar) for _, scalar in added) else WINDOW
        block = self.below(child, outer, level)
        if block.level == GROUP and not self.grouped(block, [scalar for _, scalar in added]):
            block = self.wrap(block, (ref.name for ref in child.columns))
        columns = {ref.name: block.columns[ref.name] for ref in kept}
        new = self.texts(added, {**outer, **block.columns})
        plain = block.plain and all(isinstance(scalar, Ref) for _, scalar in added)
        return replace(block, columns=columns | new, plain=plain)

    def grouped(self, block: Block, scalars: Iterable[Scalar]) -> bool:
        """Whether the queries in expressions use nothing of the groups but plain keys."""
        return all(names_in_queries(s) & block.columns.keys() <= block.keys for s in scalars)

    def filter(self, relation: Filter, outer: Texts) -> Block:
        block = self.below(relation.child, outer, GROUP)
        if block.level == GROUP and not self.grouped(block, [relation.condition]):
            block = self.wrap(block, (ref.name for ref in relation.columns))
        text = self.scalar(relation.condition, {**outer, **block.columns})
        if block.level == GROUP:
            return replace(block, having=(*block.having, text))
        return replace(block, where=(*block.where, text), level=WHERE, plain=False)

    def join(self, relation: Join, outer: Texts) -> Block:
        if relation.merged:
            return self.merged(relation, outer)
        left = self.side(relation.left, outer)
        reached = {**outer, **left.columns} if relation.lateral else outer
        if relation.lateral:
            right = self.wrap(
                self.block(relation.right, reached), (ref.name for ref in relation.right.columns)
            )
            right = replace(right, source=f"LATERAL {right.source}")
        else:
            right = self.side(relation.right, outer)
        columns = {**left.columns, **right.columns}
        second = f"({right.source})" if right.joined else right.source
        if relation.condition is None:
            word = relation.kind.upper()
            return Block(f"{left.source} {word} {second}", columns, joined=True)
        condition = self.scalar(relation.condition, {**outer, **columns})
        if relation.kind == "comma":
            first = f"({left.source})" if left.joined else left.source
            return Block(
                f"{first}, {second}", columns, WHERE, (condition,), plain=False, joined=True
            )
        word = relation.kind.upper()
        return Block(f"{left.source} {word} {second} ON {condition}", columns, joined=True)

    def merged(self, relation: Join, outer: Texts) -> Block:
        """USING or NATURAL: both sides are derived tables whose keys have the same names."""
        sides: list[Block] = []
        aliases: list[str] = []
        for side, place in ((relation.left, 1), (relation.right, 2)):
            block = self.below(side, outer, WINDOW)
            labels = {pair[place].name: pair[0].name for pair in relation.merged}
            names = [ref.name for ref in side.columns]
            alias = self.alias("q")
            text = block.select(names, [labels.get(name, name) for name in names])
            sides.append(
                Block(
                    f"({text}) AS {alias}",
                    {name: f"{alias}.{name}" for name in names if name not in labels},
                )
            )
            aliases.append(alias)
        keys = [pair[0].name for pair in relation.merged]
        columns = {key: key for key in keys} | dict(sides[0].columns) | dict(sides[1].columns)
        word = relation.kind.upper()
        if relation.natural:
            return Block(
                f"{sides[0].source} NATURAL {word} {sides[1].source}", columns, joined=True
            )
        using = f" USING ({', '.join(keys)})"
        return Block(f"{sides[0].source} {word} {sides[1].source}{using}", columns, joined=True)

    def series(self, relation: Series, outer: Texts) -> Block:
        alias = self.alias("f")
        names = ", ".join(ref.name for ref in relation.columns_added)
        fields = tuple((ref.name, ref) for ref in relation.columns_added)
        ordinality = " WITH ORDINALITY" if relation.ordinality else ""
        if relation.child is None:
            call = self.scalar(relation.call, outer)
            return Block(f"{call}{ordinality} AS {alias} ({names})", columns_of(alias, fields))
        left = self.side(relation.child, outer)
        call = self.scalar(relation.call, {**outer, **left.columns})
        word, on = ("LEFT JOIN LATERAL", " ON true") if relation.outer else ("CROSS JOIN", "")
        return Block(
            f"{left.source} {word} {call}{ordinality} AS {alias} ({names}){on}",
            {**left.columns, **columns_of(alias, fields)},
            joined=True,
        )

    def aggregate(self, relation: Aggregate, outer: Texts) -> Block:
        block = self.below(relation.child, outer, WHERE)
        # A constant in GROUP BY would be the number of a column.
        if not all(has_column(block.columns[key.name]) for key in relation.keys):
            block = self.wrap(block, (ref.name for ref in relation.child.columns))
        keys = {key.name: block.columns[key.name] for key in relation.keys}
        calls = self.texts(relation.calls, {**outer, **block.columns})
        group = ", ".join(keys.values())
        if relation.sets is not None:
            group = relation.sets.format(*keys.values())
        plain = frozenset(name for name, text in keys.items() if is_plain(text))
        return replace(
            block,
            columns=keys | calls,
            level=GROUP,
            group=group,
            plain=False,
            keys=plain if relation.sets is None else frozenset(),
            calls=tuple(calls.values()),
        )

    def distinct(self, relation: Distinct, outer: Texts) -> Block:
        block = self.below(relation.child, outer, WINDOW)
        if not relation.on:
            return replace(block, distinct="DISTINCT ", level=DISTINCT, plain=False)
        on = ", ".join(block.columns[order.ref.name] for order in relation.on)
        if not all(is_plain(block.columns[order.ref.name]) for order in relation.on):
            block = self.wrap(block, (ref.name for ref in relation.columns))
            on = ", ".join(block.columns[order.ref.name] for order in relation.on)
        order = ", ".join(ordered(o, block.columns[o.ref.name]) for o in relation.on)
        rest = ", ".join(ordered(o, o.ref.name) for o in relation.order)
        tail = f" ORDER BY {order}{', ' if rest else ''}{rest}"
        return replace(block, distinct=f"DISTINCT ON ({on}) ", tail=tail, level=ORDER, plain=False)

    def topk(self, relation: TopK, outer: Texts) -> Block:
        block = self.block(relation.child, outer)
        if block.tail or block.crowded:
            block = self.wrap(block, (ref.name for ref in relation.columns))
        tail = " ORDER BY " + ", ".join(ordered(o, o.ref.name) for o in relation.order)
        offset = f" OFFSET {relation.offset}" if relation.offset else ""
        if relation.ties:
            tail += f"{offset} FETCH FIRST {relation.limit} ROWS WITH TIES"
        else:
            tail += f" LIMIT {relation.limit}{offset}"
        return replace(block, tail=tail, level=ORDER, plain=False)

    def operand(self, side: Relation, outer: Texts, names: tuple[Ref, ...] | None) -> str:
        block = self.block(side, outer)
        own = [ref.name for ref in side.columns]
        labels = own if names is None else [ref.name for ref in names]
        # What a set operation or an ORDER BY names cannot be named anew.
        if (block.raw is not None or block.tail) and labels != own:
            block = self.wrap(block, own)
        text = block.select(own, labels)
        return f"({text})" if block.raw is not None or block.tail else text

    def recursion(self, relation: Recursion) -> Block:
        """A derived table with a WITH of its own."""
        name, alias = self.alias("w"), self.alias("q")
        first, step = (
            self.wrap(self.block(side, {}), (ref.name for ref in side.columns))
            for side in (relation.left, relation.right)
        )
        names = [ref.name for ref in relation.names]
        begin, end, *depth = (f"{name}.{one}" for one in names)
        source, target = step.columns.values()
        zero, further, guard = ("", "", "")
        if relation.deepest is not None:
            zero, further = ", 0", f", {depth[0]} + 1"
            guard = f" WHERE {depth[0]} < {relation.deepest}"
        union = "UNION" if relation.deepest is None else "UNION ALL"
        text = (
            f"WITH RECURSIVE {name} ({', '.join(names)}) AS"
            f" (SELECT {', '.join(first.columns.values())}{zero} FROM {first.source} {union}"
            f" SELECT {begin}, {target}{further} FROM {name} JOIN {step.source}"
            f" ON {source} = {end}{guard}) SELECT {', '.join(names)} FROM {name}"
        )
        return Block(f"({text}) AS {alias}", {one: f"{alias}.{one}" for one in names})

    def name(self, relation: Named, outer: Texts) -> Block:
        child = relation.child
        names = [ref.name for ref in child.columns]
        if relation.form == "derived" or free_names(child):
            return self.wrap(self.block(child, outer), names)
        known = self.named.get((relation.form, child))
        if known is None:
            if relation.form in ("cte", "nested cte"):
                inside = relation.form == "nested cte"
                text = self.statement(child) if inside else self.query(self.block(child, {}), child)
                known = self.alias("w")
                self.expressions.append((known, text))
            else:
                text = self.statement(child)
                known = self.alias(f"{self.prefix}_")
                self.needed.append((relation.form, known, text))
            self.named[relation.form, child] = known
        alias = self.alias("r")
        return Block(f"{known} AS {alias}", {name: f"{alias}.{name}" for name in names})


def write(relation: Relation, prefix: str) -> Written:
    """The statements of a view; `prefix` begins the names of what has to be created for it."""
    writer = Writer(prefix)
    query = writer.statement(relation)
    return Written(tuple(writer.needed), query)
