"""Who may be in a cycle: tables whose queries are monotone in each other.

More rows in one of them never take rows from another, so that their least fixed point exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.catalog.records import RefreshMode
from headrace.errors import UserError
from headrace.graph import unstratifiable
from headrace.plan.loop import JOIN_WITH_ITSELF, MATCH_IN_ITSELF, obstacle
from headrace.query import BoundQuery
from headrace.relations.definition import stored_edges

# Schema and name.
Name = tuple[str, str]


@dataclass(frozen=True)
class CycleMembers:
    """The tables of a planned cycle: what each reads of the others, and their new relations.

    Unless `stratified`, nothing in their queries may be non-monotone, whatever table it is about.
    """

    reads: Mapping[Name, frozenset[Name]]
    relations: Mapping[Name, str]
    stratified: bool

    @property
    def members(self) -> frozenset[str]:
        return frozenset(self.relations.values())

    def admit(self, relation: str, mode: RefreshMode, bound: BoundQuery) -> None:
        """Refuse a member that has no least fixed point, or that rounds cannot compute."""
        name = next(name for name, own in self.relations.items() if own == relation)
        if mode is RefreshMode.FULL:
            raise full_in_cycle(name)
        self._require_monotone(name, bound)
        unfollowable = obstacle(bound.plan, self.members, levels=False, nested=True)
        if unfollowable is not None:
            raise _not_followed(name, unfollowable)

    def _require_monotone(self, name: Name, bound: BoundQuery) -> None:
        edges = stored_edges(bound)
        reads = {
            member: {
                read_member: edges.get(self.relations[read_member], ()) if member == name else ()
                for read_member in others
            }
            for member, others in self.reads.items()
        }
        for edge in unstratifiable(reads):
            operators = ", ".join(edge.operators)
            path = " → ".join(map(shown, (*edge.path, edge.reader)))
            read = "itself" if edge.read == edge.reader else shown(edge.read)
            raise UserError(
                "unstratifiable",
                f"stream table {shown(edge.reader)} reads {read} under {operators}",
                detail=f"It reads itself by way of {path}. More rows could take rows away, so the"
                " cycle has no least fixed point.",
                hint=f"Use {operators} only on tables outside of the cycle.",
            )
        words = {word: None for operators in edges.values() for word in operators}
        if words and not self.stratified:
            raise UserError(
                "unstratifiable",
                f"stream table {shown(name)} is in a cycle and uses {', '.join(words)}",
                detail="While the setting stratified_cycle_validation is off, tables of a cycle"
                " must be monotone in all that they read.",
                hint="Turn the setting on to allow it on tables outside of the cycle.",
            )


def _not_followed(name: Name, unfollowable: str) -> UserError:
    """Return the error of a query that is monotone, but cannot be computed in rounds.

    Only lowering puts a cycle's own rows under what is not monotone: the rows that an inner query
    is computed for.
    """
    if unfollowable in (JOIN_WITH_ITSELF, MATCH_IN_ITSELF):
        construct = unfollowable
        hint = "Move that part into a stream table of its own, outside of the cycle."
    else:
        construct = (
            "a LATERAL query or a subquery that cannot be computed apart from the cycle's rows"
        )
        hint = (
            "Let it read the row around it only in equalities of its WHERE, without GROUP BY,"
            " LIMIT, windows and expressions that can fail; or make it a join."
        )
    return UserError(
        "unsupported-query",
        f"stream table {shown(name)} reads its own cycle under {construct}",
        detail="The rounds in which tables that read each other are computed cannot follow that.",
        hint=hint,
    )


def full_in_cycle(name: Name) -> UserError:
    """Return the error of a member of a cycle with refresh_mode FULL."""
    return UserError(
        "invalid-option",
        f"stream table {shown(name)} is in a cycle and cannot have refresh_mode FULL",
        detail="Tables that read each other are advanced together, from their changes.",
        hint="Set refresh_mode to AUTO or DIFFERENTIAL.",
    )


def shown(name: Name) -> str:
    return ".".join(name)
