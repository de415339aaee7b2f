"""The demo on the screen and as a JSON document; all times in seconds."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from headrace.cli.documents import receipt_document
from headrace.cli.tables import compared, table_of
from headrace.cli.words import change, counted, plain, seconds
from headrace.demo.outcome import Created, Event, Opened, Outcome, Round, Timed, middle, phases
from headrace.demo.trade import TradeTotals
from headrace.demo.views import DemoView, change_text, pick

if TYPE_CHECKING:
    from pathlib import Path

    from headrace.cli.screen import Screen


def demo_document(outcome: Outcome, kept: Path | None) -> dict[str, Any]:
    return {
        "equal": outcome.equal,
        "seconds": outcome.seconds,
        "home": None if kept is None else str(kept),
        "shop": dict(outcome.opened.shop.rows),
        "written": asdict(outcome.written),
        "rounds": [
            {
                "round": round_.number,
                "at": round_.at,
                "written": asdict(round_.written),
                "refreshes": [_timed(timed, round_.number) for timed in round_.timed],
            }
            for round_ in outcome.rounds
        ],
        "tables": [_table(outcome, view) for view in outcome.views],
    }


def _timed(timed: Timed, number: int) -> dict[str, Any]:
    sample = pick(timed.samples, number)
    return {
        "table": timed.view.table,
        "mode": timed.refresh.mode,
        "rows_inserted": timed.refresh.rows_inserted,
        "rows_deleted": timed.refresh.rows_deleted,
        "seconds": timed.seconds,
        "spark_jobs": timed.refresh.spark_jobs,
        "sample": None if sample is None else change_text(timed.view, sample),
    }


def _table(outcome: Outcome, view: DemoView) -> dict[str, Any]:
    (created,) = (event for event in outcome.created if event.view == view)
    (checked,) = (event for event in outcome.checked if event.view == view)
    idle = [event for event in outcome.idle if event.view == view]
    live = outcome.live(view)
    refreshes = [pair.refresh for pair in outcome.pairs_of(view)]
    full = [pair.full for pair in outcome.pairs_of(view)]
    return {
        "table": view.table,
        "query": view.query,
        "rows": checked.receipt.rows,
        "create_seconds": created.seconds,
        "live_refreshes": len(live),
        "live_median": middle(live),
        "idle_seconds": [event.seconds for event in idle],
        "idle_spark_jobs": sum(event.refresh.spark_jobs for event in idle),
        "refresh_seconds": [event.seconds for event in refreshes],
        "refresh_median": middle(refreshes),
        "refresh_phases": phases(refreshes),
        "full_seconds": [event.seconds for event in full],
        "full_median": middle(full),
        "full_over_refresh": outcome.ratio(view),
        "verify": receipt_document(view.table, checked.receipt),
    }


NAME_WIDTH = 16


def show_event(screen: Screen, event: Event) -> None:
    match event:
        case Opened():
            show_opened(screen, event)
        case Created():
            show_created(screen, event)
        case Round():
            show_round(screen, event)


def show_opened(screen: Screen, opened: Opened) -> None:
    rows = opened.shop.rows
    screen.show(
        heading("A shop in PostgreSQL"),
        Text(", ".join(f"{number:,} {table.replace('_', ' ')}" for table, number in rows.items())),
        heading("Four stream tables over it"),
    )


def show_created(screen: Screen, created: Created) -> None:
    line = Table.grid(padding=(0, 2, 0, 0))
    line.add_column(min_width=NAME_WIDTH, no_wrap=True)
    line.add_column()
    line.add_row(
        Text(created.view.name, style="bold"),
        Text.assemble(
            created.view.about,
            (f"\n{counted(created.rows, 'row')}, made in {seconds(created.seconds)}", "dim"),
        ),
    )
    screen.show(line)


def show_round(screen: Screen, done: Round) -> None:
    if done.number == 1:
        screen.show(heading("The shop is open; every few seconds the tables are refreshed"))
    lines = Table.grid(padding=(0, 2, 0, 0), expand=True)
    lines.add_column(min_width=NAME_WIDTH, no_wrap=True)
    lines.add_column(justify="right", min_width=11, no_wrap=True)
    lines.add_column(justify="right", min_width=6, no_wrap=True)
    lines.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    for timed in done.timed:
        sample = pick(timed.samples, done.number)
        lines.add_row(
            timed.view.name,
            change(timed.refresh.rows_inserted, timed.refresh.rows_deleted),
            Text(seconds(timed.seconds), style="cyan"),
            Text(plain(change_text(timed.view, sample)) if sample else "no change", style="dim"),
        )
    head = Text.assemble((f"{done.at:3.0f} s  ", "bold"), wrote(done.written))
    screen.show(head, lines)


def wrote(written: TradeTotals) -> str:
    """Return what the shop wrote, in a line."""
    if not written.transactions:
        return "the shop wrote nothing"
    rows = f"{counted(written.inserted, 'row')} in, {written.updated:,} changed"
    back = f"; {written.rolled_back} rolled back" if written.rolled_back else ""
    transactions = counted(written.transactions, "transaction")
    return f"{transactions}: {rows}, {written.deleted:,} out{back}"


def show_outcome(screen: Screen, outcome: Outcome, home: Path, *, kept: bool) -> None:
    """Print the figures of the run, and the commands to try next."""
    screen.show(
        heading("What a refresh costs, and what computing the table in full costs"),
        costs(outcome),
        *(Text(line) for line in remarks(outcome)),
        heading("Is it all true? Recomputed and compared, row by row"),
        truth(outcome),
        heading("In short"),
        Text(summary(outcome), style="bold green" if outcome.equal else "bold red"),
        heading("What to try next"),
    )
    for line in next_steps(outcome, home if kept else None):
        screen.command(line)


def heading(text: str) -> Padding:
    line = Rule(Text(text, style="bold"), align="left", characters="─", style="dim")
    return Padding(line, (1, 0, 0, 0))


def costs(outcome: Outcome) -> Table:
    """Return the medians of this run.

    In full there was nothing left to publish, so that time is not too long.
    """
    rows = []
    for view in outcome.views:
        pairs, live = outcome.pairs_of(view), outcome.live(view)
        times = (
            middle(live),
            middle([pair.refresh for pair in pairs]),
            middle([pair.full for pair in pairs]),
        )
        ratio = outcome.ratio(view)
        rows.append(
            (
                view.name,
                str(len(live)),
                *("-" if time is None else seconds(time) for time in times),
                "-" if ratio is None else f"{ratio:.1f} ×",
            )
        )
    headings = ("stream table", "live refreshes", "median", "refresh", "in full", "ratio")
    return table_of(headings, rows, right=headings[1:])


def remarks(outcome: Outcome) -> list[str]:
    """Return how to read the costs, and what a refresh costs when nothing is new."""
    every = [pair.refresh for view in outcome.views for pair in outcome.pairs_of(view)]
    inside = ", ".join(f"{name} {seconds(value)}" for name, value in phases(every).items())
    idle = median(refresh.seconds for refresh in outcome.idle)
    jobs = sum(refresh.refresh.spark_jobs for refresh in outcome.idle)
    batches = counted(len(outcome.pairs) // len(outcome.views), "batch", "batches")
    return [
        f"Live while the shop was open; then both ways in turn, for {batches}.",
        f"Inside a refresh: {inside}.",
        f"A refresh with nothing new: {seconds(idle)} and {counted(jobs, 'Spark job')}.",
    ]


def truth(outcome: Outcome) -> Table:
    rows = (
        (
            checked.view.name,
            "equal" if checked.receipt.equal else "NOT EQUAL",
            f"{checked.receipt.rows:,}",
            compared(checked.receipt),
        )
        for checked in outcome.checked
    )
    return table_of(("stream table", "result", "rows", "compared"), rows, right=("rows",))


def summary(outcome: Outcome) -> str:
    refreshes = sum(len(round_.timed) for round_ in outcome.rounds)
    wrong = [checked.view.name for checked in outcome.checked if not checked.receipt.equal]
    verdict = (
        "every table is exactly what its query says"
        if not wrong
        else f"NOT what their queries say: {', '.join(wrong)}"
    )
    return (
        f"{counted(outcome.written.transactions, 'transaction')} taken in by "
        f"{counted(refreshes, 'refresh', 'refreshes')} in {seconds(outcome.seconds)}; {verdict}."
    )


def next_steps(outcome: Outcome, home: Path | None) -> list[str]:
    if home is None:
        more = round(10 * outcome.opened.shop.rows["order_lines"], -3)
        steps = (
            ("headrace demo --home shop-demo", "the same, and the shop stays there"),
            (f"headrace demo --lines {more}", "the same with ten times the rows"),
            ("headrace init", "a project of your own in .headrace"),
        )
        return [f"{command:<34}{description}" for command, description in steps]
    at = f"headrace --home {shlex.quote(str(home))}"
    table = outcome.views[0].table
    return [
        f"{at} status",
        f"{at} explain {table}",
        f'{at} psql -- -c "DELETE FROM shop.orders WHERE id < 9"',
        f"{at} refresh --all",
        f"{at} verify --all --source",
    ]
