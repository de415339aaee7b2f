"""Results as tables for people: readable at 80 columns, long names folded, never cut."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace.cli.documents import took
from headrace.cli.words import age, change, counted, moment, plain, roughly, seconds

if TYPE_CHECKING:
    from rich.table import Table

    from headrace.catalog.records import Receipt, Refresh
    from headrace.observe.capture_status import SourceCapture
    from headrace.observe.database_status import DatabaseStatus
    from headrace.observe.group_status import GroupMember
    from headrace.observe.strata_status import ComponentStatus, StratumStatus
    from headrace.observe.table_status import TableStatus

COLOURS = {
    "ACTIVE": "green",
    "INITIALIZING": "yellow",
    "SUSPENDED": "yellow",
    "ERROR": "red",
    "equal": "green",
    "NOT EQUAL": "bold red",
}

# Columns from which on a terminal is wide.
WIDE = 100


def table_of(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    right: Sequence[str] = (),
    prose: str = "",
) -> Table:
    """Return a plain table. `right` names columns of numbers.

    The first and `prose` may be folded.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for number, heading in enumerate(headings):
        table.add_column(
            heading,
            justify="right" if heading in right else "left",
            overflow="fold",
            no_wrap=bool(number) and heading != prose,
        )
    for row in rows:
        table.add_row(*(Text(plain(cell), style=COLOURS.get(cell, "")) for cell in row))
    return table


def listed(tables: Sequence[TableStatus]) -> Table:
    rows = ((t.name, t.status, t.refresh_mode, t.schedule or "by hand") for t in tables)
    return table_of(("stream table", "status", "mode", "schedule"), rows)


def standing(
    tables: Sequence[TableStatus], last: Mapping[str, Refresh], width: int = WIDE
) -> Table:
    """Return the table of statuses and latest refreshes, for so many columns of a terminal.

    Where there is little room, the names have it, and the lag is left out.
    """
    rows = []
    for table in tables:
        refresh = last.get(table.name)
        done = ("-", "-", "-")
        if refresh is not None:
            rows_changed = change(refresh.rows_inserted, refresh.rows_deleted)
            done = (refresh.mode.lower(), rows_changed, seconds(took(refresh)))
        lag = "-" if table.lag is None else age(table.lag)
        lags = (lag, behind(table)) if width >= WIDE else (lag,)
        rows.append((table.name, table.status, str(table.epoch), *lags, *done))
    lag_headings = ("lag", "behind") if width >= WIDE else ("lag",)
    headings = ("stream table", "status", "epoch", *lag_headings, "last refresh", "rows", "took")
    return table_of(headings, rows, right=("epoch", *lag_headings, "rows", "took"))


def behind(table: TableStatus) -> str:
    """Return how long a table has lacked available changes, and its inputs: 3 s+1 min."""
    if table.lag_own is None:
        return "-"
    inherited = [roughly(table.lag_inherited)] if table.lag_inherited else []
    return "+".join([roughly(table.lag_own), *inherited])


def troubles(table: TableStatus) -> list[str]:
    """Return why a table is suspended, waits or fails."""
    lines = [f"{table.name}: {table.reason}"] if table.reason else []
    if table.blocked_by is not None:
        lines.append(f"{table.name}: waits for {table.blocked_by}")
    if table.failures:
        lines.append(f"{table.name}: failed {counted(table.failures, 'time')} in a row")
    return lines


def place(table: TableStatus) -> list[str]:
    """Return a table's place among the others: its stratum, component and group, and what it reads.

    Its options stand in between.
    """
    lines = [f"{table.name}: stratum {table.stratum}"]
    if table.scc_id is not None:
        lines.append(f"{table.name}: member of component {table.scc_id}")
    if table.last_iterations is not None:
        last = counted(table.last_iterations, "iteration")
        lines.append(f"{table.name}: last fixed point after {last}")
    if table.group is not None:
        others = ", ".join(name for name in table.group_members if name != table.name)
        lines.append(f"{table.name}: member of group {table.group}, with {others}")
    lines += [f"{table.name}: {option} {value}" for option, value in table.options.items()]
    if table.reads_per_minute is not None:
        lines.append(f"{table.name}: {tier(table)}")
    lines += [str(edge) for edge in table.edges]
    return lines + [f"{table.name}: {captured(source)}" for source in table.capture]


def captured(source: SourceCapture) -> str:
    """Return how the changes of a source are captured: by triggers, or through which slot."""
    if source.slot is None:
        return f"{source.source} is captured by {source.mode}"
    return (
        f"{source.source} is captured by {source.mode}, slot {source.slot},"
        f" decoder {source.decoder}"
    )


def tier(table: TableStatus) -> str:
    """Return the tier in force, by how many reads, and the next one: warm by 2.4 reads a minute."""
    in_force = f"{table.tier_in_force} by {table.reads_per_minute:.1f} reads a minute"
    if table.next_tier_at is None:
        return in_force
    at = table.next_tier_at.astimezone().strftime("%H:%M:%S")
    return f"{in_force}; {table.next_tier} from {at} on if nobody reads it"


def refreshed(refreshes: Sequence[tuple[str, Refresh]]) -> Table:
    """Return what a refresh command did."""
    rows = (
        (
            name,
            refresh.mode.lower(),
            change(refresh.rows_inserted, refresh.rows_deleted),
            str(refresh.epoch),
            seconds(took(refresh)),
            str(refresh.spark_jobs),
        )
        for name, refresh in refreshes
    )
    headings = ("stream table", "mode", "rows", "epoch", "took", "jobs")
    return table_of(headings, rows, right=("rows", "epoch", "took", "jobs"))


def remembered(refreshes: Sequence[tuple[str, Refresh]]) -> Table:
    """Return the history, newest first."""
    rows = (
        (
            name,
            moment(refresh.started_at),
            "failed" if refresh.error else refresh.mode.lower(),
            change(refresh.rows_inserted, refresh.rows_deleted),
            str(refresh.epoch),
            seconds(took(refresh)),
        )
        for name, refresh in refreshes
    )
    headings = ("stream table", "started", "mode", "rows", "epoch", "took")
    return table_of(headings, rows, right=("rows", "epoch", "took"))


def phases(refresh: Refresh) -> str:
    """Return where the time of a refresh went."""
    return ", ".join(f"{name} {seconds(value)}" for name, value in refresh.phases.items())


def circumstances(refresh: Refresh, names: Mapping[str, str]) -> list[str]:
    """Return how many iterations a refresh took, what it skipped, and what it published with."""
    lines = []
    if refresh.iterations is not None:
        lines.append(f"fixed point after {counted(refresh.iterations, 'iteration')}")
    if refresh.strata_skipped:
        lines.append(f"skipped {counted(refresh.strata_skipped, 'stratum', 'strata')}")
    others = sorted(
        names[relation]
        for relation in refresh.group
        if relation in names and relation != refresh.table
    )
    if others:
        lines.append(f"published with {', '.join(others)}")
    return lines


def verified(receipts: Sequence[tuple[str, Receipt]]) -> Table:
    rows = (
        (
            name,
            "equal" if receipt.equal else "NOT EQUAL",
            f"{receipt.rows:,}",
            f"{receipt.missing:,}",
            f"{receipt.surplus:,}",
            str(receipt.epoch),
            compared(receipt),
        )
        for name, receipt in receipts
    )
    headings = ("stream table", "result", "rows", "missing", "surplus", "epoch", "compared")
    return table_of(headings, rows, right=("rows", "missing", "surplus", "epoch"), prose="compared")


def listed_receipts(receipts: Sequence[tuple[str, Receipt]]) -> Table:
    """Return what was verified when, by whom, and how much of it."""
    rows = (
        (
            name,
            moment(receipt.verified_at),
            "equal" if receipt.equal else "NOT EQUAL",
            f"{receipt.rows:,}",
            receipt.oracle,
            covered(receipt),
        )
        for name, receipt in receipts
    )
    headings = ("stream table", "verified", "result", "rows", "oracle", "covered")
    return table_of(headings, rows, right=("rows",), prose="covered")


def covered(receipt: Receipt) -> str:
    """Return which rows were compared: all, or those with some values of a column."""
    coverage = receipt.covered
    if coverage is None:
        return "all"
    if "buckets" in coverage:
        return f"bucket {coverage['bucket']} of {coverage['buckets']} by {coverage['column']}"
    chosen = coverage["values"]
    if "ranges" in coverage:
        chosen = [*coverage["ranges"], *([None] if None in coverage["values"] else [])]
    text = f"{coverage['column']}: {', '.join(map(_chosen, chosen))}"
    if "without_rows" in coverage:
        text += f" (no rows: {', '.join(map(_chosen, coverage['without_rows']))})"
    return text


def _chosen(value: Any) -> str:
    """Return a value, or a range, by which rows were chosen."""
    if isinstance(value, list):
        return f"{value[0]} to before {value[1]}"
    return "NULL" if value is None else str(value)


def compared(receipt: Receipt) -> str:
    """Return what was compared with what the table shows: recomputed, served, 3 sources."""
    kinds = [bags.partition(" ")[0] for bags in receipt.detail]
    others = [kind for kind in kinds if kind != "source"]
    sources = len(kinds) - len(others)
    kinds_compared = others + ([counted(sources, "source")] if sources else [])
    return ", ".join(kinds_compared + ([] if receipt.covered is None else [covered(receipt)]))


def differences(name: str, receipt: Receipt) -> list[str]:
    """Return the sample rows of a verify that found a difference, one line each."""
    lines = []
    for bags, comparison in receipt.detail.items():
        pair = bags if " " in bags else f"{bags} {name}"
        lines += [f"{pair}: {_sample(row)}" for row in comparison.get("sample", ())]
    return lines


def _sample(row: Mapping[str, Any]) -> str:
    copies = int(row.get("copies", 0))
    values = ", ".join(f"{key} {value}" for key, value in row.items() if key != "copies")
    side = "missing" if copies > 0 else "surplus"
    return plain(f"{abs(copies)} {side}: {values}")


def strata_table(strata: Sequence[StratumStatus]) -> Table:
    """Return every stratum with its stream tables; the number of edges that are not monotone."""
    rows = (
        (
            ", ".join(stratum.members),
            str(stratum.stratum),
            "yes" if stratum.has_cycles else "-",
            str(len(stratum.non_monotone_edges)),
            f"{stratum.refreshed:,}",
            f"{stratum.skipped:,}",
            _last_tick(stratum),
        )
        for stratum in strata
    )
    numbers = ("stratum", "not monotone", "refreshed", "skipped")
    headings = ("stream tables", "stratum", "cycles", "not monotone", *numbers[2:], "last tick")
    return table_of(headings, rows, right=numbers)


def _last_tick(stratum: StratumStatus) -> str:
    if stratum.last_tick_at is None:
        return "-"
    return "skipped" if stratum.skipped_last else "not skipped"


def components_table(components: Sequence[ComponentStatus]) -> Table:
    rows = (
        (
            ", ".join(component.members),
            str(component.scc_id),
            "-" if component.last_iterations is None else str(component.last_iterations),
            moment(component.last_converged_at),
            "yes" if component.monotone else "no",
        )
        for component in components
    )
    headings = ("stream tables", "component", "iterations", "converged", "monotone")
    return table_of(headings, rows, right=("component", "iterations"))


def groups_table(members: Sequence[GroupMember]) -> Table:
    """Return the members of every group; where paths meet, and what is published together."""
    rows = (
        (
            member.name,
            str(member.group),
            "yes" if member.is_convergence else "-",
            str(member.epoch),
            member.policy or "each",
            "yes" if member.atomic else "no",
            member.declared or "-",
        )
        for member in members
    )
    headings = ("stream table", "group", "convergence", "epoch", "due", "atomic", "declared")
    return table_of(headings, rows, right=("group", "epoch"))


def databases_table(databases: Sequence[DatabaseStatus]) -> Table:
    """Return the source databases, with what they were attached with."""
    rows = (
        (
            database.alias,
            str(database.sources),
            str(database.share),
            "-" if database.quota is None else str(database.quota),
            str(database.priority),
            moment(database.cut_at),
            database.address or "",
        )
        for database in databases
    )
    numbers = ("sources", "share", "quota", "priority")
    headings = ("database", *numbers, "latest cut", "address")
    return table_of(headings, rows, right=numbers, prose="address")


def failing_databases(databases: Sequence[DatabaseStatus]) -> list[str]:
    """Return why changes of databases are not taken in, and since when."""
    return [
        f"{database.alias}: no changes are taken in since {moment(database.failing_since)}:"
        f" {database.failure}"
        for database in databases
        if database.failing_since is not None
    ]


def set_values(rows: Iterable[Mapping[str, Any]]) -> Table:
    """Return the settings: those that were changed have their default beside them."""
    cells = (
        (
            row["name"],
            _shown(row["value"]),
            "" if row["value"] == row["default"] else _shown(row["default"]),
            row["description"] or "",
        )
        for row in rows
    )
    headings = ("setting", "value", "default", "what it is")
    return table_of(headings, cells, right=("value", "default"), prose="what it is")


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
