"""A FROM clause as SQL: parentheses only where they are wanted or cannot be left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fuzz.block import FROM, WHERE, Block, Texts
from fuzz.from_clause import From, Item, Leaf, Pair, only, plain, space
from fuzz.relations import Again, Named, Scan

if TYPE_CHECKING:
    from fuzz.write import Writer


def clause(writer: Writer, relation: From, outer: Texts) -> Block:
    """Relations further left are known to those that are LATERAL."""
    columns: dict[str, str] = {}
    parts = []
    for part in relation.parts:
        text, found = _item(writer, part, {**outer, **columns})
        columns |= found
        parts.append(text)
    columns |= {ref.name: label for ref, label in plain(*relation.parts)}
    where = tuple(writer.scalar(one, {**outer, **columns}) for one in relation.where)
    level = WHERE if where else FROM
    return Block(", ".join(parts), columns, level, where, plain=False, joined=True)


def _item(writer: Writer, item: Item, outer: Texts) -> tuple[str, dict[str, str]]:
    if isinstance(item, Leaf):
        return _leaf(writer, item, outer)
    left, columns = _item(writer, item.left, outer)
    right, others = _item(writer, item.right, {**outer, **columns})
    columns |= others
    # What has no condition of its own ends with the first relation that follows.
    if isinstance(item.right, Pair) and _ends_at_once(item):
        right = right if item.right.parentheses or item.right.alias else f"({right})"
    text = f"{left} {'NATURAL ' if item.natural else ''}{item.kind.upper()} {right}"
    if item.merged and not item.natural:
        text += f" USING ({', '.join(label for label, _ in item.merged)})"
    elif item.condition is not None:
        known = {ref.name: label for ref, label in plain(item.left, item.right)}
        text += f" ON {writer.scalar(item.condition, {**outer, **columns, **known})}"
    if item.alias:
        alias = writer.alias("j")
        return f"({text}) AS {alias}", {
            r.name: f"{alias}.{label}" for label, r in only(space(item))
        }
    return (f"({text})" if item.parentheses else text), columns


def _ends_at_once(item: Pair) -> bool:
    return item.natural or (not item.merged and item.condition is None)


def _leaf(writer: Writer, leaf: Leaf, outer: Texts) -> tuple[str, dict[str, str]]:
    relation = leaf.relation
    labels = [leaf.label(ref) for ref in relation.columns]
    match relation:
        case Scan(table=table, fields=fields):
            alias = writer.alias("t")
            named = "" if labels == [name for name, _ in fields] else f" ({', '.join(labels)})"
            text = f"{table} AS {alias}{named}"
        case Named() | Again() if not leaf.labels:
            block = writer.side(relation, {})
            return block.source, dict(block.columns)
        case _:
            block = writer.block(relation, outer)
            own = [ref.name for ref in relation.columns]
            alias = writer.alias("q")
            fixed = block.raw is not None or bool(block.tail)
            shown = block.select(own) if fixed else block.select(own, labels)
            text = f"({shown}) AS {alias}" + (f" ({', '.join(labels)})" if fixed else "")
            if leaf.lateral:
                text = f"LATERAL {text}"
    texts = {
        ref.name: f"{alias}.{label}" for ref, label in zip(relation.columns, labels, strict=True)
    }
    return text, texts
