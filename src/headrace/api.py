"""What users import: `connect`, and the project that it opens."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from headrace.boundary.entry_points import entry_point, entry_points
from headrace.catalog import PostgresCatalog
from headrace.catalog.records import Receipt, Refresh
from headrace.commands.client import cancel, submit
from headrace.commands.commands import (
    Alter,
    Apply,
    ConvertBuffers,
    Create,
    CreateOrReplace,
    Drop,
    RefreshTable,
    Reinit,
    Repair,
    Resume,
    Run,
    Suspend,
    Verify,
)
from headrace.commands.database_commands import AlterDatabase, Attach, Detach
from headrace.commands.fresh import wait_fresh
from headrace.commands.run import Done
from headrace.daemon.context import Report, ignore_report
from headrace.daemon.daemon import Daemon
from headrace.embedded import EmbeddedServer
from headrace.engine import HOME, Engine, Progress, no_progress
from headrace.errors import HeadraceError, UserError
from headrace.files.private import close_home
from headrace.lifecycle.alter import KEEP, Alteration, Keep
from headrace.lifecycle.drop import finish_removals
from headrace.lifecycle.planned_table import TableRequest
from headrace.lifecycle.rebuild import resume_mode
from headrace.lifecycle.repair import Damage
from headrace.lifecycle.uninstall import uninstall, uninstall_sql
from headrace.observe import health
from headrace.observe.health import Health
from headrace.observe.heartbeat import watched
from headrace.observe.reader import ProjectReader
from headrace.observe.table_status import TableStatus
from headrace.project.apply import plan_project
from headrace.project.plan import ProjectPlan
from headrace.project.read import read_folder
from headrace.relations.compaction import Merges
from headrace.schedule.state import schedules_of
from headrace.settings import Places, Settings, places, resolve
from headrace.source.connection import Database
from headrace.spark.run import CANCEL_SECONDS, Runner
from headrace.spark.session import Spark
from headrace.statements.options import refresh_mode as refresh_mode_of
from headrace.store import DeltaStore
from headrace.verify.oracle import oracle_of
from headrace.verify.sample import SampleRequest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@entry_point
def connect(
    dsn: str | None = None,
    home: str | Path | None = None,
    spark: SparkSession | str | None = None,
    store: str | None = None,
    setup_dsn: str | None = None,
    *,
    create: bool = True,
    progress: Progress = no_progress,
) -> Headrace:
    """Open a project, and create it if it is new; without `create` that is `no-project`.

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
    return Headrace(where, session, progress, create=create)


@entry_points
class Headrace(ProjectReader):
    """An open project. Use it in a `with`, or call `close`."""

    def __init__(
        self,
        where: Places,
        session: SparkSession | None,
        progress: Progress,
        *,
        create: bool = True,
    ) -> None:
        self.home = where.home.expanduser().absolute()
        if where.dsn is None and not create and not (self.home / "pg").is_dir():
            raise UserError(
                "no-project",
                f"no project in {self.home}",
                hint="Create one with `headrace init`, or name another folder with --home "
                "or a server with --dsn.",
            )
        self._server: EmbeddedServer | None = None
        self._closed = False
        close_home(self.home, with_store=where.store is None)
        server_dsn, setup = (
            None if secret is None else resolve(secret.get_secret_value())
            for secret in (where.dsn, where.setup_dsn)
        )
        if server_dsn is None:
            self._server = EmbeddedServer.open(self.home)
            server_dsn = self._server.dsn
        self.dsn = server_dsn
        self._spark = Spark.open(
            session if session is not None else where.spark,
            log=self.home / "log" / "spark.log",
            starting=lambda: progress("starting Spark", 0, 0),
        )
        try:
            database = Database(server_dsn, setup)
            catalog = PostgresCatalog.open(database.connect, create=create)
            store = DeltaStore(where.store or str(self.home / "store"))
            self._folders = tuple(
                folder for folder in (self.home, store.folder) if folder is not None
            )
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
        """Create a stream table of the query's result and fill it; all or nothing."""
        values = {"schedule": schedule, "refresh_mode": refresh_mode, **options}
        request = TableRequest.of(name, query, values)
        made = submit(self._engine, Create((request,)))
        return self._statuses(made)[0]

    def create_or_replace_stream_table(
        self,
        name: str,
        query: str,
        schedule: str | None = None,
        refresh_mode: str = "AUTO",
        **options: Any,
    ) -> TableStatus:
        """Create the stream table, or give the existing one this query and these options."""
        values = {"schedule": schedule, "refresh_mode": refresh_mode, **options}
        request = TableRequest.of(name, query, values)
        return self._statuses([submit(self._engine, CreateOrReplace(request))])[0]

    def create_stream_tables(
        self, tables: Mapping[str, str | Mapping[str, Any]]
    ) -> tuple[TableStatus, ...]:
        """Create several stream tables, which may read each other, in any order; all or none.

        Each name has its query, or a mapping with `query` and the options of
        `create_stream_table`.
        """
        requests = tuple(TableRequest.read(name, definition) for name, definition in tables.items())
        made = submit(self._engine, Create(requests))
        return self._statuses(made)

    def alter_stream_table(
        self,
        name: str,
        *,
        query: str | Keep = KEEP,
        schedule: str | Keep | None = KEEP,
        refresh_mode: str | Keep | None = KEEP,
        rename_to: str | Keep = KEEP,
        **options: Any,
    ) -> TableStatus:
        """Change what is given about a stream table, all of it or nothing.

        None takes an option back to its default.
        Another query recomputes the table and all that read it; the served table is brought to the
        new rows and columns in place. So does another `partition_by`, for which the served table
        is rebuilt.
        """
        values = {"schedule": schedule, "refresh_mode": refresh_mode, **options}
        alteration = Alteration.of(values, query=query, rename_to=rename_to)
        return self._statuses([submit(self._engine, Alter(*self._name(name), alteration))])[0]

    def suspend(self, name: str) -> TableStatus:
        """Stop refreshing a stream table until it is resumed; what it serves stays readable."""
        return self._statuses([submit(self._engine, Suspend(*self._name(name)))])[0]

    def resume(self, name: str, mode: str | None = None) -> TableStatus:
        """Resume a suspended stream table; after a change of its sources it is rebuilt.

        One that `max_change_rows` has stopped takes in the change with mode "apply", and is
        recomputed from scratch with "rebuild", or without a mode.
        """
        resume_as = resume_mode(mode)
        return self._statuses([submit(self._engine, Resume(*self._name(name), resume_as))])[0]

    def reinit(self, name: str) -> Refresh:
        """Rebuild a stream table from its inputs, also where logs are lost or damaged."""
        return submit(self._engine, Reinit(*self._name(name)))

    def repair(self) -> tuple[Damage, ...]:
        """Read all that is stored, rebuild what is lost or damaged, and return what that was.

        Damaged sources are copied again, damaged stream tables are rebuilt, with their readers.
        """
        return submit(self._engine, Repair())

    def convert_buffers(self) -> tuple[str, ...]:
        """Bring change buffers that exist to `max_buffer_mb` and `unlogged_buffers`; their sources.

        Every cut does that, too, where no writer is in the way.
        """
        return submit(self._engine, ConvertBuffers())

    def run(self, text: str) -> tuple[Done, ...]:
        """Run statements about stream tables, such as CREATE STREAM TABLE … AS SELECT …;"""
        return submit(self._engine, Run(text))

    def plan(self, folder: str | Path, *, prune: bool = False) -> ProjectPlan:
        """Return what it takes for the stream tables to be those of a folder of *.sql files.

        Nothing is changed. With `prune` those that are not in the folder go.
        """
        definitions = read_folder(Path(folder), self._engine.database.search_path[0])
        return plan_project(self._engine, str(folder), definitions, prune=prune)

    def apply(self, plan: ProjectPlan | str | Path, *, prune: bool = False) -> ProjectPlan:
        """Create, alter, rebuild and drop stream tables as a folder, or a plan of one, says.

        A stale plan is refused. Return what was done, as a plan.
        """
        expected = plan if isinstance(plan, ProjectPlan) else None
        if expected is not None and prune and not expected.prune:
            raise UserError("invalid-option", "the plan was made without prune")
        folder = str(plan if expected is None else expected.folder)
        definitions = read_folder(Path(folder), self._engine.database.search_path[0])
        prune = prune if expected is None else expected.prune
        return submit(self._engine, Apply(folder, definitions, prune, expected))

    def attach(
        self,
        alias: str,
        dsn: str,
        *,
        setup_dsn: str | None = None,
        share: int = 1,
        quota: int | None = None,
        priority: int = 0,
    ) -> None:
        """Attach a database: queries name its tables alias.schema.table.

        A connection string holds no password; `env:NAME` and `file:PATH` say where one is kept
        that does. When refreshes wait for workers, it is entitled to `quota` of them, or to its
        `share` of what quotas of others leave; a higher `priority` comes first. Given again, all
        of them change.
        """
        submit(self._engine, Attach(alias, dsn, setup_dsn, share, quota, priority))

    def alter_database(
        self,
        alias: str,
        *,
        share: int | Keep = KEEP,
        quota: int | Keep | None = KEEP,
        priority: int | Keep = KEEP,
    ) -> None:
        """Change what a database may claim of a daemon's workers; the home database is `home`."""
        values = {"share": share, "quota": quota, "priority": priority}
        changes = {name: value for name, value in values.items() if value is not KEEP}
        submit(self._engine, AlterDatabase(alias, changes))

    def detach(self, alias: str) -> None:
        """Detach a database that no stream table reads."""
        submit(self._engine, Detach(alias))

    def drop_stream_table(self, name: str, *, cascade: bool = False) -> None:
        """Drop a stream table (with `cascade` its readers too), and capture that nobody needs."""
        submit(self._engine, Drop(*self._name(name), cascade))

    def refresh(self, name: str, mode: str | None = None) -> Refresh:
        """Refresh a stream table to the newest state of its sources."""
        requested_mode = None if mode is None else refresh_mode_of(mode)
        return submit(self._engine, RefreshTable(*self._name(name), requested_mode))

    def wait_fresh(self, name: str, timeout: float = 60.0) -> int:
        """Wait until the stream table shows all that was committed before the call; its epoch.

        A daemon brings that about by its schedules; `wait-timeout` if it does not in so many
        seconds. Without one, and where no schedule would, the table is refreshed.
        """
        return wait_fresh(self._engine, *self._name(name), timeout)

    def verify(
        self,
        name: str,
        *,
        source: bool = False,
        oracle: str = "spark",
        sample: float | str | Mapping[str, Iterable[Any]] | None = None,
    ) -> Receipt:
        """Recompute the stream table and compare it as a bag; `source` also checks its sources.

        Spark recomputes it as it is. With `oracle="postgres"` the table is refreshed to a cut, and
        PostgreSQL answers the query in the snapshot of that cut. A `sample` compares a part of it:
        a share of the values of a column (0.01, "1% by customer"), the next one each time, or
        rows with some values ({"day": ["2026-03-01"]}); what it reads is then taken as stored.
        """
        part = None if sample is None else str(SampleRequest.of(sample))
        return submit(self._engine, Verify(*self._name(name), source, oracle_of(oracle), part))

    def uninstall(self, *, keep_tables: bool = False) -> None:
        """Take everything of Headrace out of the database and the store, and close the project.

        Stream tables go, too, or stay behind as ordinary tables with `keep_tables`.
        """
        uninstall(self._engine, keep_tables=keep_tables)
        self.close()

    def uninstall_sql(self, *, keep_tables: bool = False) -> str:
        """Return the SQL that `uninstall` would run."""
        return uninstall_sql(self._engine, keep_tables=keep_tables)

    def set(self, setting: str, value: Any) -> None:
        """Change a setting of the project; None takes it back to its default."""
        values = {k: v for k, v in self._state().settings.items() if k != setting}
        Settings.of({**values, setting: value} if value is not None else values)
        if setting not in Settings.model_fields:
            raise UserError("invalid-option", f"unknown setting {setting!r}")
        self._engine.catalog.set(setting, value)

    def superuser_roles(self) -> tuple[str, ...]:
        """Return the roles of Headrace that are superusers without need, in all databases.

        An embedded server is nobody else's, and has one role. A database that does not answer is
        passed over.
        """
        engine = self._engine
        roles = [] if self._server is not None else [*engine.database.superusers]
        for database in engine.catalog.state().databases:
            if database.id != HOME:
                with suppress(HeadraceError):
                    roles += engine.source_database(database).superusers
        return tuple(dict.fromkeys(roles))

    def health_check(self) -> Health:
        """Return the health of daemon, tables, lag, capture, disk and roles."""
        engine, statuses = self._engine, self.status()
        sources, zone = self.check_cdc_health(), engine.settings(self._state()).time_zone
        heartbeat = watched(engine.catalog.heartbeat)
        return Health(
            (
                health.daemon(engine.catalog.serving(), statuses, heartbeat),
                health.tables(statuses),
                health.lag(statuses, schedules_of(self._state(), zone), datetime.now(UTC), sources),
                health.capture(sources),
                health.disk(*self._room()),
                health.roles(self.superuser_roles()),
            )
        )

    def daemon(self, report: Report = ignore_report) -> Daemon:
        """Return the daemon of this project: `run` it here, `stop` it from another thread.

        `report` is called with what it does, in words.
        """
        return Daemon(self._engine, report, room=self._room)

    def _room(self) -> tuple[int, int]:
        """Return the free and total bytes of the fuller disk of home folder and store."""
        # The store's folder is made with the first stream table.
        existing_folders = (
            next(p for p in (folder, *folder.parents) if p.exists()) for folder in self._folders
        )
        scarcest = min(map(shutil.disk_usage, existing_folders), key=lambda usage: usage.free)
        return scarcest.free, scarcest.total

    # The names of the command line.
    groups = ProjectReader.diamond_groups
    strata = ProjectReader.stratum_status
    cycles = ProjectReader.scc_status
    cdc = ProjectReader.check_cdc_health
    health = health_check

    def cancel(self) -> None:
        """Stop the Spark jobs that run now, from another thread; what they were for fails.

        Commands that a daemon does for this object are stopped there.
        """
        cancel(self._engine)

    def close(self) -> None:
        """Stop Spark if it was started here, close connections, and release the embedded server."""
        if not self._closed:
            self._closed = self._engine.closed = True
            self._engine.part(Merges).close()
            self._engine.runner.close()
            # Cancelled, it ends soon; it must not meet a Spark that is gone.
            self._engine.part(Merges).wait(CANCEL_SECONDS)
            self._engine.catalog.close()
            self._release()
            self._engine.close()

    def _release(self) -> None:
        self._spark.close()
        if self._server is not None:
            self._server.close()

    def __enter__(self) -> Headrace:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
