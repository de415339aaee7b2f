"""Records with every field set, and a project that answers from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any

from headrace.catalog.records import OutputColumn, Receipt, Refresh, StratumTicks
from headrace.commands.run import Done
from headrace.errors import UserError
from headrace.graph.draw import FORMATS
from headrace.graph.network import Network
from headrace.lifecycle.repair import Damage
from headrace.observe import health
from headrace.observe.cdc_status import SourceHealth
from headrace.observe.group_status import GroupMember
from headrace.observe.health import Health
from headrace.observe.strata_status import (
    ComponentStatus,
    StrataExplanation,
    StratumStatus,
    components_of,
    explain_network,
    strata_of,
)
from headrace.observe.table_status import TableStatus
from headrace.project.plan import Act, ProjectPlan, TableChange
from headrace.refresh.explain import ExplainedStage, Explanation
from headrace.settings import Settings
from headrace.types import BIGINT

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
LONG = "public." + "überlange_tabelle_" * 3


def table(name: str = "public.totals", **changed: Any) -> TableStatus:
    made = TableStatus(name, "ACTIVE", None, 7, NOON, timedelta(seconds=90), "AUTO", None)
    return replace(made, **changed)


def refresh(mode: str = "DIFFERENTIAL", **changed: Any) -> Refresh:
    made = Refresh(
        table="r1",
        epoch=7,
        mode=mode,
        reason="every stage is maintained incrementally",
        rows_inserted=12,
        rows_deleted=3,
        phases={"cut": 0.02, "compute": 0.11},
        spark_jobs=1,
        started_at=NOON,
        finished_at=NOON + timedelta(milliseconds=187),
        versions={"r1": 4},
        id=1,
    )
    return replace(made, **changed)


def receipt(equal: bool = True) -> Receipt:
    sample = [] if equal else [{"copies": -1, "customer": "ada", "n": "3"}]
    detail = {
        "recomputed a.b": {"missing": 0, "surplus": len(sample), "sample": sample},
        "served a.b": {"missing": 0, "surplus": 0, "sample": []},
    }
    return Receipt("r1", 7, equal, 10, 0, len(sample), None, detail, NOON, definition="now")


def explanation(name: str = "public.totals") -> Explanation:
    return Explanation(
        name,
        "SELECT count(*) AS n FROM t",
        "Aggregate: n = count(*)\n  Scan public.t",
        (OutputColumn("n", BIGINT, "bigint"),),
        ("n",),
        ("take a cut of public.t", "publish public.totals"),
        (ExplainedStage("public.totals", "DIFFERENTIAL", "sums", ("change of t",), "SELECT 1"),),
        ("ORDER BY is ignored",),
    )


NETWORK = Network(
    {
        "public.far": {"public.near": (), "public.t": ()},
        "public.near": {"public.far": ("aggregate",), "public.t": ("NOT EXISTS",)},
    }
)


PLAN = ProjectPlan(
    "folder",
    False,
    "w",
    "c",
    (
        TableChange(Act.CREATE, ("public", "new"), "not there yet", place="new.sql, line 1"),
        TableChange(
            Act.REBUILD, ("public", "sums"), "the query differs", {"tier": None}, ("public.top",)
        ),
        TableChange(Act.UNCHANGED, ("public", "same"), "as in the folder"),
        TableChange(Act.DROP, ("public", "old"), "not in the folder"),
    ),
)


SOURCES = (
    SourceHealth(
        "public.orders",
        "home",
        "WAL",
        "auto",
        None,
        "ACTIVE",
        3 * 2**20,
        timedelta(seconds=4),
        "0/16B3748",
        "fine",
        None,
        "headrace_1f2e3d4c",
        "key",
    ),
    SourceHealth(
        "crm.public.customer",
        "crm",
        "TRIGGER",
        "wal",
        "wal_level is replica",
        "ACTIVE",
        812,
        None,
        None,
        "warning",
        "captured by triggers, not from the log: wal_level is replica",
    ),
)


@dataclass
class MemoryProject:
    """The part of Headrace that commands use; `fails` gives the error of a table that has one."""

    tables: tuple[TableStatus, ...] = (table(),)
    fails: dict[str, BaseException] = field(default_factory=dict)
    equal: bool = True
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    given: dict[str, Any] = field(default_factory=dict)
    dsn: str = "postgresql:///somewhere?host=/run"
    network: Network = NETWORK
    planned: ProjectPlan = PLAN
    groups: tuple[GroupMember, ...] = (
        GroupMember(1, "public.totals", False, 7, "slowest", True),
        GroupMember(1, "public.averages", True, 7, "slowest", True),
        GroupMember(2, "public.others", True, 3, None, False, "sales"),
    )

    sources: tuple[SourceHealth, ...] = SOURCES
    free: int = 1
    verified: tuple[Receipt, ...] = ()
    refreshes: tuple[Refresh, ...] = (refresh(), refresh("FULL", rows_deleted=0))

    def connect(self) -> Callable[..., MemoryProject]:
        """What stands in for headrace.connect."""

        def opened(**given: Any) -> MemoryProject:
            self.given = given
            return self

        return opened

    def status(self) -> tuple[TableStatus, ...]:
        return self.tables

    def create_stream_table(self, name: str, query: str, **options: Any) -> TableStatus:
        self._act("create", name, query, options)
        return table(f"public.{name}")

    def create_or_replace_stream_table(self, name: str, query: str, **options: Any) -> TableStatus:
        self._act("replace", name, query, options)
        return table(f"public.{name}")

    def alter_stream_table(self, name: str, **given: Any) -> TableStatus:
        self._act("alter", name, given)
        return table(given.get("rename_to", name))

    def suspend(self, name: str) -> TableStatus:
        self._act("suspend", name)
        return table(name, status="SUSPENDED", reason="suspended by hand")

    def resume(self, name: str, mode: str | None = None) -> TableStatus:
        self._act("resume", name, *((mode,) if mode else ()))
        return table(name)

    def reinit(self, name: str) -> Refresh:
        self._act("reinit", name)
        return refresh("FULL")

    def repair(self) -> tuple[Damage, ...]:
        self._act("repair", None)
        return (
            () if self.equal else (Damage("public.t", "source", "rows.parquet is missing", True),)
        )

    def run(self, text: str) -> tuple[Done, ...]:
        self._act("run", text)
        return (Done("created", "public.made"), Done("refreshed (FULL)", "public.made"))

    def plan(self, folder: Path, *, prune: bool = False) -> ProjectPlan:
        self._act("plan", str(folder), prune)
        return replace(self.planned, folder=str(folder), prune=prune)

    def apply(self, plan: ProjectPlan) -> ProjectPlan:
        self._act("apply", plan.folder, plan.prune)
        return plan

    def uninstall(self, *, keep_tables: bool = False) -> None:
        self._act("uninstall", keep_tables)

    def uninstall_sql(self, *, keep_tables: bool = False) -> str:
        return f"BEGIN;\nDROP [red] {keep_tables};\nCOMMIT;\n"

    def drop_stream_table(self, name: str, *, cascade: bool = False) -> None:
        self._act("drop", name, cascade)
        self.tables = tuple(one for one in self.tables if not cascade and one.name != name)

    def refresh(self, name: str, mode: str | None = None) -> Refresh:
        self._act("refresh", name, mode)
        return refresh()

    def wait_fresh(self, name: str, timeout: float = 60.0) -> int:
        self._act("wait", name, timeout)
        return 9

    def verify(
        self,
        name: str,
        *,
        source: bool = False,
        oracle: str = "spark",
        sample: str | None = None,
    ) -> Receipt:
        self._act("verify", name, source, oracle, *([] if sample is None else [sample]))
        return receipt(self.equal)

    def history(self, name: str | None = None, limit: int = 100) -> tuple[Refresh, ...]:
        bare = {one.name.split(".", 1)[1] for one in self.tables}
        if name is not None and name.split(".")[-1].strip('"') not in bare | {"made"}:
            raise UserError("unknown-stream-table", f"stream table {name} does not exist")
        return self.refreshes[:limit]

    def receipts(
        self, name: str | None = None, limit: int | None = 100, *, current: bool = False
    ) -> tuple[Receipt, ...]:
        return tuple(one for one in self.verified[:limit] if one.definition == "now" or not current)

    def explain(self, name: str | None = None, *, query: str | None = None) -> Explanation:
        self._act("explain", name, query)
        return explanation()

    def stratum_status(self) -> tuple[StratumStatus, ...]:
        return strata_of(self.network, [StratumTicks(1, 7, 3, True, NOON)])

    def scc_status(self) -> tuple[ComponentStatus, ...]:
        return components_of(self.network, [("public.near", refresh(iterations=4))])

    def check_cdc_health(self) -> tuple[SourceHealth, ...]:
        return self.sources

    def health_check(self) -> Health:
        checks = (health.daemon(None, self.tables), health.tables(self.tables))
        return Health((*checks, health.capture(self.sources), health.disk(self.free, 1000)))

    def cdc_sql(self, *tables: str) -> str:
        self._act("cdc_sql", *tables, None)
        return "BEGIN;\nALTER TABLE [red] REPLICA IDENTITY FULL;\nCOMMIT;\n"

    def convert_buffers(self) -> tuple[str, ...]:
        self._act("convert_buffers", None)
        return ("public.orders",)

    def diamond_groups(self) -> tuple[GroupMember, ...]:
        return self.groups

    def explain_strata(self, tables: Any) -> StrataExplanation:
        self._act("explain_strata", str(tables), tables)
        return explain_network(self.network)

    def graph(self, format: str = "text") -> str:  # noqa: A002
        self._act("graph", format)
        return FORMATS[format](self.network)

    def set(self, setting: str, value: Any) -> None:
        self._act("set", setting, value)

    def settings(self) -> dict[str, Any]:
        return Settings().model_dump()

    def __enter__(self) -> MemoryProject:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.calls.append(("close",))

    def _act(self, *call: Any) -> None:
        self.calls.append(call)
        if call[1] in self.fails:
            raise self.fails[call[1]]
