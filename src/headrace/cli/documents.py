"""Results as JSON documents. The keys are an interface: they are added to, never renamed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.catalog.records import Receipt, Refresh
    from headrace.graph.network import NetworkEdge
    from headrace.graph.strata import Unstratifiable
    from headrace.observe.database_status import DatabaseStatus
    from headrace.observe.strata_status import ComponentStatus, StratumStatus
    from headrace.observe.table_status import TableStatus
    from headrace.refresh.explain import Explanation


NO_NAMES: Mapping[str, str] = {}


def listed_document(table: TableStatus) -> dict[str, Any]:
    """Return a stream table as it was defined."""
    return {
        "name": table.name,
        "status": table.status,
        "refresh_mode": table.refresh_mode,
        "schedule": table.schedule,
        "options": dict(table.options),
    }


def status_document(
    table: TableStatus, last: Refresh | None = None, names: Mapping[str, str] = NO_NAMES
) -> dict[str, Any]:
    """Return the status of a stream table.

    Lags in seconds. `names` are those of tables by relation.
    """
    return {
        **listed_document(table),
        "reason": table.reason,
        "held": table.held,
        "epoch": table.epoch,
        "as_of": _time(table.as_of),
        "lag": _seconds(table.lag),
        "lag_own": _seconds(table.lag_own),
        "lag_inherited": _seconds(table.lag_inherited),
        "blocked_by": None if table.blocked_by is None else asdict(table.blocked_by),
        "failures": table.failures,
        "tier": table.tier,
        "tier_in_force": table.tier_in_force,
        "reads_per_minute": table.reads_per_minute,
        "next_tier": table.next_tier,
        "next_tier_at": _time(table.next_tier_at),
        "notices": list(table.notices),
        "stratum": table.stratum,
        "scc_id": table.scc_id,
        "last_iterations": table.last_iterations,
        "group": table.group,
        "group_members": list(table.group_members),
        "edges": [edge_document(edge) for edge in table.edges],
        "capture": [asdict(source) for source in table.capture],
        "last_refresh": None if last is None else refresh_document(table.name, last, names),
    }


def database_document(database: DatabaseStatus) -> dict[str, Any]:
    """Return a source database and its latest cut."""
    times = {"cut_at": _time(database.cut_at), "failing_since": _time(database.failing_since)}
    return {**asdict(database), **times}


def refresh_document(
    name: str, refresh: Refresh, names: Mapping[str, str] = NO_NAMES
) -> dict[str, Any]:
    """Return a refresh; seconds and phases in seconds, phases in the order in which they came.

    `group` has the tables that were refreshed as one, as far as they still exist.
    """
    return {
        "table": name,
        "epoch": refresh.epoch,
        "mode": refresh.mode,
        "reason": refresh.reason,
        "rows_inserted": refresh.rows_inserted,
        "rows_deleted": refresh.rows_deleted,
        "seconds": took(refresh),
        "phases": dict(refresh.phases),
        "spark_jobs": refresh.spark_jobs,
        "started_at": _time(refresh.started_at),
        "finished_at": _time(refresh.finished_at),
        "versions": dict(refresh.versions),
        "stages": [asdict(stage) for stage in refresh.stages],
        "error": refresh.error,
        "iterations": refresh.iterations,
        "strata_skipped": refresh.strata_skipped,
        "group": [names[relation] for relation in refresh.group if relation in names],
        "effort": None if refresh.effort is None else asdict(refresh.effort),
    }


def took(refresh: Refresh) -> float:
    """Return the seconds from the start of a refresh to its end."""
    return (refresh.finished_at - refresh.started_at).total_seconds()


def receipt_document(name: str, receipt: Receipt) -> dict[str, Any]:
    """Return the result of a verify; `compared` has one entry for each pair of bags."""
    return {
        "table": name,
        "equal": receipt.equal,
        "oracle": receipt.oracle,
        "epoch": receipt.epoch,
        "rows": receipt.rows,
        "missing": receipt.missing,
        "surplus": receipt.surplus,
        "tolerance": receipt.tolerance,
        "compared": {bags: dict(comparison) for bags, comparison in receipt.detail.items()},
        "verified_at": _time(receipt.verified_at),
        "covered": None if receipt.covered is None else dict(receipt.covered),
    }


def explanation_document(explanation: Explanation) -> dict[str, Any]:
    """Return what a refresh would do, from the plan to the Spark SQL of every stage."""
    return {
        "name": explanation.name,
        "query": explanation.query,
        "columns": [
            {"name": column.name, "type": column.served, "kept_as": column.type.sql}
            for column in explanation.columns
        ],
        "key": list(explanation.key),
        "index": None if explanation.index is None else asdict(explanation.index),
        "partition_by": explanation.partition_by,
        "plan": explanation.plan,
        "steps": list(explanation.steps),
        "stages": [
            {
                "relation": stage.relation,
                "mode": stage.mode,
                "reason": stage.reason,
                "reads": list(stage.reads),
                "read_by": dict(stage.read_by),
                "sql": stage.sql,
            }
            for stage in explanation.stages
        ],
        "notices": list(explanation.notices),
        "stratum": explanation.stratum,
        "scc_id": explanation.scc_id,
        "group": explanation.group,
        "group_others": list(explanation.group_others),
        "group_declared": explanation.group_declared,
        "edges": [edge_document(edge) for edge in explanation.edges],
        "outlook": None if explanation.outlook is None else asdict(explanation.outlook),
    }


def edge_document(edge: NetworkEdge) -> dict[str, Any]:
    """Return how a stream table depends on one that it reads; `operators` make it non-monotone."""
    return {
        "table": edge.reader,
        "reads": edge.read,
        "monotone": edge.monotone,
        "operators": list(edge.operators),
    }


def stratum_document(stratum: StratumStatus) -> dict[str, Any]:
    """Return a layer of stream tables."""
    return {
        "stratum": stratum.stratum,
        "member_count": stratum.member_count,
        "members": list(stratum.members),
        "has_cycles": stratum.has_cycles,
        "non_monotone_edges": [edge_document(edge) for edge in stratum.non_monotone_edges],
        "refreshed": stratum.refreshed,
        "skipped": stratum.skipped,
        "skipped_last": stratum.skipped_last,
        "last_tick_at": _time(stratum.last_tick_at),
    }


def component_document(component: ComponentStatus) -> dict[str, Any]:
    """Return the stream tables of a component, which read each other."""
    return {
        "scc_id": component.scc_id,
        "member_count": component.member_count,
        "members": list(component.members),
        "last_iterations": component.last_iterations,
        "last_converged_at": _time(component.last_converged_at),
        "monotone": component.monotone,
    }


def unstratifiable_document(edge: Unstratifiable[str]) -> dict[str, Any]:
    """Return an edge inside a component that is not monotone.

    `path` begins and ends with its reader.
    """
    return {
        "table": edge.reader,
        "reads": edge.read,
        "operators": list(edge.operators),
        "path": [*edge.path, edge.path[0]],
    }


def setting_document(
    name: str, value: Any, default: Any, description: str | None
) -> dict[str, Any]:
    return {"name": name, "value": value, "default": default, "description": description}


def _seconds(value: timedelta | None) -> float | None:
    return None if value is None else value.total_seconds()


def _time(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat()
