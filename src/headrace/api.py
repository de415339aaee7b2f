"""What users import: `connect` and the object it gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from headrace.catalog import PostgresCatalog, State, new_relation_id
from headrace.catalog.records import Receipt, Refresh, StreamTable
from headrace.definition import define
from headrace.embedded import EmbeddedServer
from headrace.engine import Engine, Progress, no_progress
from headrace.errors import UserError
from headrace.graph.cycles import cycles
from headrace.graph.draw import FORMATS
from headrace.lifecycle.alter import KEEP, Alteration, Keep, alter
from headrace.lifecycle.check import Request
from headrace.lifecycle.create import check_query, create, create_or_replace
from headrace.lifecycle.drop import drop
from headrace.lifecycle.names import parse_name
from headrace.lifecycle.options import refresh_mode as refresh_mode_of
from headrace.lifecycle.options import refuse_unknown
from headrace.lifecycle.renew import refresh, reinit, resume, suspend
from headrace.lifecycle.run import Done, run
from headrace.lifecycle.sources import finish_removals
from headrace.lifecycle.stratify import stratify
from headrace.lifecycle.uninstall import uninstall, uninstall_sql
from headrace.refresh.explain import Explanation, explain, placed
from headrace.refresh.refresh import require_table
from headrace.relations.frame import published_frame
from headrace.settings import Places, Settings, places, resolve
from headrace.source.connection import Database
from headrace.spark.run import Runner
from headrace.spark.session import Spark
from headrace.store import DeltaStore
from headrace.strata_status import (
    ComponentStatus,
    StrataExplanation,
    StratumStatus,
    components_of,
    explain_network,
    names_of,
    network_of,
    strata_of,
)
from headrace.table_status import TableStatus, status_of
from headrace.verify.verify import verify

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def connect(
    dsn: str | None = None,
    home: str | Path | None = None,
    spark: SparkSession | str | None = None,
    store: str | None = None,
    setup_dsn: str | None = None,
    *,
    progress: Progress = no_progress,
) -> Headrace:
    """Open a project, and make it if it is new.

    Without `dsn` a PostgreSQL server of the project's own runs in the home folder. `spark` is a
    session, a master URL, a Spark Connect address ("sc://…") or None for local Spark, which
    starts when it is first needed. `store` is any place that every executor reaches. `setup_dsn`
    names a role that may create triggers, where the role of `dsn` may not.
    """
    session = None if isinstance(spark, str) else spark
    where = places(
        dsn=dsn,
        home=home,
        spark=spark if isinstance(spark, str) else None,
        store=store,
        setup_dsn=setup_dsn,
    )
    return Headrace(where, session, progress)


class Headrace:
    """An open project. Use it in a `with`, or call `close`."""

    def __init__(self, where: Places, session: SparkSession | None, progress: Progress) -> None:
        self.home = where.home.expanduser().absolute()
        self._server: EmbeddedServer | None = None
        self._closed = False
        given, setup = resolve(where.dsn), resolve(where.setup_dsn)
        if given is None:
            self._server = EmbeddedServer.open(self.home)
            given = self._server.dsn
        self.dsn = given
        self._spark = Spark.open(
            session if session is not None else where.spark,
            log=self.home / "log" / "spark.log",
            starting=lambda: progress("starting Spark", 0, 0),
        )
        try:
            database = Database(given, setup)
            catalog = PostgresCatalog.open(database.connect)
            store = DeltaStore(where.store or str(self.home / "store"))
            runner = Runner(self._spark)
            self._engine = Engine(database, catalog, store, runner, progress, finish_removals)
        except BaseException:
            self._release()
            raise

    def create_stream_table(
        self,
        name: str,
        query: str,
        schedule: str | None = None,
        refresh_mode: str = "AUTO",
        **options: Any,
    ) -> TableStatus:
        """Make a stream table of the query's result and fill it; all or nothing."""
        refuse_unknown(options)
        request = Request(name, query, schedule, refresh_mode_of(refresh_mode))
        return self._statuses(create(self._engine, request))[0]

    def create_or_replace_stream_table(
        self,
        name: str,
        query: str,
        schedule: str | None = None,
        refresh_mode: str = "AUTO",
        **options: Any,
    ) -> TableStatus:
        """Make the stream table, or give the one of that name this query and these options."""
        refuse_unknown(options)
        request = Request(name, query, schedule, refresh_mode_of(refresh_mode))
        return self._statuses([create_or_replace(self._engine, request)])[0]

    def create_stream_tables(
        self, tables: Mapping[str, str | Mapping[str, Any]]
    ) -> tuple[TableStatus, ...]:
        """Make several stream tables, which may read each other, in any order; all or none.

        Each name has its query, or a mapping with `query` and the options of
        `create_stream_table`.
        """
        requests = [_request(name, given) for name, given in tables.items()]
        return self._statuses(create(self._engine, *requests))

    def alter_stream_table(
        self,
        name: str,
        *,
        query: str | Keep = KEEP,
        schedule: str | Keep | None = KEEP,
        refresh_mode: str | Keep = KEEP,
        rename_to: str | Keep = KEEP,
    ) -> TableStatus:
        """Change what is given about a stream table, all of it or nothing.

        Another query computes it anew, with all that read it; what is served is brought to the
        new rows and columns in place.
        """
        mode = refresh_mode if isinstance(refresh_mode, Keep) else refresh_mode_of(refresh_mode)
        asked = Alteration(query, schedule, mode, rename_to)
        return self._statuses([alter(self._engine, *self._name(name), asked)])[0]

    def suspend(self, name: str) -> TableStatus:
        """Let a stream table stand still until it is resumed; what it serves stays readable."""
        return self._statuses([suspend(self._engine, *self._name(name))])[0]

    def resume(self, name: str) -> TableStatus:
        """Let a suspended stream table go on; after a change of its sources it is made anew."""
        return self._statuses([resume(self._engine, *self._name(name))])[0]

    def reinit(self, name: str) -> Refresh:
        """Make a stream table anew from its inputs, also where logs are lost or damaged."""
        return reinit(self._engine, *self._name(name))

    def run(self, text: str) -> tuple[Done, ...]:
        """Run statements about stream tables, such as CREATE STREAM TABLE … AS SELECT …;"""
        return tuple(run(self._engine, text))

    def drop_stream_table(self, name: str, *, cascade: bool = False) -> None:
        """Remove a stream table (with `cascade` its readers too), and capture nobody needs."""
        drop(self._engine, *self._name(name), cascade=cascade)

    def refresh(self, name: str, mode: str | None = None) -> Refresh:
        """Bring a stream table to the newest state of its sources."""
        asked = None if mode is None else refresh_mode_of(mode)
        return refresh(self._engine, *self._name(name), asked)

    def verify(self, name: str, *, source: bool = False) -> Receipt:
        """Recompute the stream table and compare it as a bag; `source` also checks its sources."""
        return verify(self._engine, *self._name(name), source=source)

    def table(self, name: str) -> DataFrame:
        """The stream table at its published epoch, as a Spark DataFrame."""
        state = self._engine.catalog.state()
        return published_frame(self._engine, state, require_table(state, *self._name(name)))

    def status(self) -> tuple[TableStatus, ...]:
        """Every stream table as it stands."""
        return self._statuses(self._state().stream_tables)

    def history(self, name: str | None = None, limit: int = 100) -> tuple[Refresh, ...]:
        """The latest refreshes of one stream table or of all, newest first."""
        relation = None
        if name is not None:
            relation = require_table(self._state(), *self._name(name)).relation
        return self._engine.catalog.refreshes(relation, limit)

    def stratum_status(self) -> tuple[StratumStatus, ...]:
        """The strata: layers of stream tables, the lowest first."""
        state = self._state()
        names = names_of(state)
        counted = self._engine.catalog.strata_skipped()
        skipped = {names[one]: number for one, number in counted.items() if one in names}
        return strata_of(network_of(state), skipped)

    def scc_status(self) -> tuple[ComponentStatus, ...]:
        """The components: stream tables that read each other, or themselves."""
        state = self._state()
        names = names_of(state)
        network = network_of(state)
        cyclic = {name for one in network.components if one.is_cyclic for name in one.members}
        refreshes = (
            (names[table.relation], refresh)
            for table in state.stream_tables
            if names[table.relation] in cyclic
            for refresh in self._engine.catalog.refreshes(table.relation)
        )
        return components_of(network, refreshes)

    def explain_strata(
        self, tables: Sequence[str] | Mapping[str, str | Mapping[str, Any]]
    ) -> StrataExplanation:
        """The strata of stream tables that exist, by name, or of queries as `create_stream_tables`
        takes them, before anything is created; with all that they rest on.

        A cycle that cannot be made is told and no error.
        """
        state = self._state()
        if isinstance(tables, Mapping):
            requests = [_request(name, given) for name, given in tables.items()]
            network = stratify(self._engine, state, requests)
        else:
            network = network_of(state)
            for name in tables:
                require_table(state, *self._name(name))
        return explain_network(network.below(".".join(self._name(name)) for name in tables))

    def graph(self, format: str = "text") -> str:  # noqa: A002
        """Sources, stream tables, components and strata as "text", "mermaid" or "dot"."""
        if format not in FORMATS:
            raise UserError(
                "invalid-option",
                f"{format!r} is no format of a graph",
                hint=f"There are {', '.join(FORMATS)}.",
            )
        return FORMATS[format](network_of(self._state()))

    def explain(self, name: str | None = None, *, query: str | None = None) -> Explanation:
        """The plan and the steps of a stream table, or of a query before anything is created."""
        state = self._state()
        if (name is None) == (query is None):
            raise UserError("invalid-option", "explain takes either a name or a query")
        follow = self._engine.settings(state).stratified_dred
        if query is not None:
            unused = f"explained_{new_relation_id()}"
            checked = check_query(self._engine, state, Request(unused, query))
            names = {s.relation: f"{s.schema}.{s.name}" for s in checked.inputs}
            names[checked.table.relation] = "the query"
            reads = {names[one]: words for one, words in checked.table.edges.items()}
            network = network_of(state).with_tables({unused: reads})
            explained = explain(
                (checked.table,), (checked.definition,), names, checked.notices, follow=follow
            )
            return placed(explained, network, unused)
        assert name is not None
        table = require_table(state, *self._name(name))
        names = names_of(state)
        cycle = cycles(state.stream_tables).get(table.relation, frozenset())
        others = (t for t in state.stream_tables if t.relation in cycle - {table.relation})
        group = (table, *others)
        definitions = tuple(define(one, state) for one in group)
        explained = explain(group, definitions, names, follow=follow)
        return placed(explained, network_of(state), names[table.relation])

    def uninstall(self, *, keep_tables: bool = False) -> None:
        """Take everything of Headrace out of the database and the store, and close the project.

        Stream tables go, too, or stay behind as ordinary tables with `keep_tables`.
        """
        uninstall(self._engine, keep_tables=keep_tables)
        self.close()

    def uninstall_sql(self, *, keep_tables: bool = False) -> str:
        """The SQL that `uninstall` would run."""
        return uninstall_sql(self._engine, keep_tables=keep_tables)

    def set(self, setting: str, value: Any) -> None:
        """Change a setting of the project; None takes it back to its default."""
        values = {k: v for k, v in self._state().settings.items() if k != setting}
        Settings.of({**values, setting: value} if value is not None else values)
        if setting not in Settings.model_fields:
            raise UserError("invalid-option", f"unknown setting {setting!r}")
        self._engine.catalog.set(setting, value)

    def settings(self) -> Mapping[str, Any]:
        """The settings in force."""
        return Settings.of(dict(self._state().settings)).model_dump()

    def cancel(self) -> None:
        """Stop the Spark jobs that run now, from another thread; what they were for fails."""
        self._engine.runner.cancel()

    def close(self) -> None:
        """Stop Spark if it was started here, close connections, let go of the embedded server."""
        if not self._closed:
            self._closed = True
            self._engine.runner.close()
            self._engine.catalog.close()
            self._release()
            self._engine.database.close()

    def _release(self) -> None:
        self._spark.close()
        if self._server is not None:
            self._server.close()

    def _statuses(self, tables: Iterable[StreamTable]) -> tuple[TableStatus, ...]:
        found = tuple(tables)
        network = network_of(self._state().with_origins(found))
        return tuple(status_of(table, network) for table in found)

    def _state(self) -> State:
        return self._engine.catalog.state()

    def _name(self, name: str) -> tuple[str, str]:
        return parse_name(name, self._engine.database.search_path[0])

    def __enter__(self) -> Headrace:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _request(name: str, given: str | Mapping[str, Any]) -> Request:
    options = {"query": given} if isinstance(given, str) else dict(given)
    if "query" not in options:
        raise UserError("invalid-option", f"there is no query for {name}")
    query = options.pop("query")
    refuse_unknown(options)
    mode = refresh_mode_of(options.get("refresh_mode"))
    return Request(name, query, options.get("schedule"), mode)
