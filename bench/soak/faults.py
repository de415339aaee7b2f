"""Faults of processes, servers, disks, rights and files.

Each is a function of the site and an event; it returns what it did. What the documentation leaves
to an operator is done by the fault itself, and returned as `operator`.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg

from bench.soak import ddl
from bench.soak.plan import Event
from bench.soak.shop import SOURCES, STREAM_TABLES
from bench.soak.site import OWNER, RUNTIME, Site, Sql


@dataclass(frozen=True)
class Done:
    """What a fault did, and the command with which an operator answered it, if any."""

    what: str
    operator: str | None = None


Fault = Callable[[Site, Event], Done]
# Seconds within which Headrace has something that a fault can hit.
PATIENCE = 120.0
HEADRACE_SESSIONS = (
    f"SELECT pid FROM pg_stat_activity WHERE usename IN ('{OWNER}', '{RUNTIME}')"
    " AND application_name NOT LIKE 'soak%'"
)


def kill_daemon(site: Site, _: Event) -> Done:
    assert site.daemon is not None
    site.daemon.kill()
    return Done("SIGKILL of the daemon")


def stop_daemon(site: Site, _: Event) -> Done:
    assert site.daemon is not None
    site.daemon.restart()
    return Done("SIGTERM of the daemon")


def pause_daemon(site: Site, event: Event) -> Done:
    assert site.daemon is not None
    site.daemon.pause(event.hold)
    return Done(f"SIGSTOP of the daemon for {event.hold} s")


def kill_jvm(site: Site, _: Event) -> Done:
    assert site.daemon is not None
    deadline = time.monotonic() + PATIENCE
    while not (java := site.daemon.java()) and time.monotonic() < deadline:
        time.sleep(0.5)
    if not java:
        raise RuntimeError("the daemon has no JVM")
    for pid in java:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return Done(f"SIGKILL of {len(java)} JVM")


def _sessions(site: Site) -> list[int]:
    """Return the server processes of Headrace, as soon as it has any."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with site.connect() as connection:
            if pids := [pid for (pid,) in connection.execute(HEADRACE_SESSIONS)]:
                return pids
        time.sleep(0.5)
    raise RuntimeError("Headrace has no session")


def cut_sessions(site: Site, event: Event) -> Done:
    """End Headrace's sessions: one of them, or all."""
    random = event.random()
    pids = _sessions(site)
    chosen = pids if random.random() < 0.5 else [random.choice(pids)]
    with site.connect() as connection:
        for pid in chosen:
            connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
    return Done(f"{len(chosen)} of {len(pids)} sessions of Headrace ended")


def kill_backend(site: Site, event: Event) -> Done:
    """Kill a server process: PostgreSQL ends all others and recovers.

    A busy machine may take seconds to notice the end. Until then the server answers, so a session
    of the soak waits for its own end.
    """
    pid = event.random().choice(_sessions(site))
    with site.server_fault(event.kind), site.connect() as witness, suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        _until_ended(witness)
    return Done("SIGKILL of a server process of Headrace")


def _until_ended(session: Sql) -> None:
    """Wait until the server has ended a session."""
    deadline = time.monotonic() + PATIENCE
    with suppress(psycopg.OperationalError):
        while time.monotonic() < deadline:
            session.execute("SELECT")
            time.sleep(0.1)
        raise RuntimeError("PostgreSQL did not notice the end of a process")


def restart_server(site: Site, event: Event) -> Done:
    with site.server_fault(event.kind):
        site.stop_server()
        time.sleep(event.hold)
        site.start_server()
    return Done(f"PostgreSQL stopped for {event.hold} s")


def crash_server(site: Site, event: Event) -> Done:
    with site.server_fault(event.kind):
        site.kill_server()
        time.sleep(event.hold)
        site.start_server()
    return Done(f"SIGKILL of PostgreSQL, started again after {event.hold} s")


def full_disk(site: Site, event: Event) -> Done:
    filler = site.disk / "filler"
    space = os.statvfs(site.disk)
    leave = event.random().choice((0, 4096, 65536))
    try:
        with filler.open("wb") as file, suppress(OSError):
            os.posix_fallocate(file.fileno(), 0, max(1, space.f_bavail * space.f_bsize - leave))
        time.sleep(event.hold)
    finally:
        filler.unlink(missing_ok=True)
    return Done(f"{leave} bytes left to the store for {event.hold} s")


def lost_read_right(site: Site, event: Event) -> Done:
    table = event.random().choice(SOURCES)
    taken = f"REVOKE SELECT ON {table} FROM {RUNTIME}"
    given = f"GRANT SELECT ON {table} TO {RUNTIME}"
    _lost(site, event, taken, given)
    return Done(taken, given)


def lost_capture_right(site: Site, event: Event) -> Done:
    """Take a right that capture needs: of the triggers' owner, or of the role that reads WAL."""
    schema = "SCHEMA headrace_capture"
    choices = [
        (f"REVOKE ALL ON {schema} FROM {OWNER}", f"GRANT ALL ON {schema} TO {OWNER}"),
        (
            f"REVOKE ALL ON ALL TABLES IN {schema} FROM {OWNER}",
            f"GRANT ALL ON ALL TABLES IN {schema} TO {OWNER}",
        ),
    ]
    if site.mode == "wal":
        choices.append((f"ALTER ROLE {RUNTIME} NOREPLICATION", f"ALTER ROLE {RUNTIME} REPLICATION"))
    taken, given = event.random().choice(choices)
    _lost(site, event, taken, given)
    return Done(taken, given)


def _lost(site: Site, event: Event, taken: str, given: str) -> None:
    with site.connect(name="soak ddl") as connection:
        connection.execute(taken.encode())
        try:
            time.sleep(event.hold)
        finally:
            connection.execute(given.encode())


def lost_capture(site: Site, event: Event) -> Done:
    """Take away what captures: a trigger, or the slot or a table's entry in the publication."""
    random = event.random()
    with site.connect(name="soak ddl") as connection:
        if site.mode == "wal" and random.random() < 0.5:
            return Done(_drop_slot(connection))
        if site.mode == "wal":
            table = random.choice(SOURCES)
            with suppress(psycopg.errors.UndefinedObject):
                connection.execute(f"ALTER PUBLICATION headrace DROP TABLE {table}".encode())
            return Done(f"{table} taken out of the publication")
        triggers = connection.execute(
            "SELECT tgrelid::regclass::text, quote_ident(tgname) FROM pg_trigger"
            " WHERE tgname LIKE 'headrace%%' AND NOT tgisinternal AND tgparentid = 0"
            " AND tgrelid::regclass::text = ANY (%s) ORDER BY 1, 2",
            (list(SOURCES),),
        ).fetchall()
        if not triggers:
            raise RuntimeError("no source has a trigger")
        table, trigger = random.choice(triggers)
        if random.random() < 0.5:
            connection.execute(f"DROP TRIGGER {trigger} ON {table}".encode())
            return Done(f"trigger of {table} dropped")
        connection.execute(f"ALTER TABLE {table} DISABLE TRIGGER {trigger}".encode())
        return Done(f"trigger of {table} disabled")


def _drop_slot(connection: psycopg.Connection[tuple[object, ...]]) -> str:
    for _ in range(100):
        rows = connection.execute("SELECT slot_name, active_pid FROM pg_replication_slots")
        slots = rows.fetchall()
        if not slots:
            return "there was no slot"
        for name, pid in slots:
            if pid is not None:
                connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
            try:
                connection.execute("SELECT pg_drop_replication_slot(%s)", (name,))
            except psycopg.errors.ObjectInUse:
                time.sleep(0.05)
            else:
                return "slot dropped"
    return "the slot was always in use"


def lost_file(site: Site, event: Event) -> Done:
    """Delete or truncate a file of the store; then the operator runs `headrace repair`."""
    random = event.random()
    relation = random.choice(sorted(path for path in site.store.iterdir() if path.is_dir()))
    pattern = random.choice(("*.parquet", "_delta_log/*.json"))
    files = sorted(relation.glob(pattern), key=lambda path: path.stat().st_mtime)
    file = (files or sorted(relation.glob("_delta_log/*.json")))[-1]
    halved = random.random() < 0.5
    try:
        if halved:
            os.truncate(file, file.stat().st_size // 2)
        else:
            file.unlink()
    except FileNotFoundError:
        pass
    time.sleep(event.hold)
    return Done(f"{_kind(file)} {'halved' if halved else 'deleted'}", _repair(site))


def _kind(file: Path) -> str:
    folder = "log" if file.parent.name == "_delta_log" else "data"
    return f"{folder} file *{file.suffix} of {file.parts[-3 if folder == 'log' else -2]}"


def _repair(site: Site) -> str:
    """Run `headrace repair`, again while something passing is in the way."""
    said = ""
    for _ in range(5):
        document = site.command("repair")
        damages = document.get("damages")
        if damages is not None and all(one["mended"] for one in damages):
            return f"headrace repair: {len(damages)} damages mended"
        said = str(document)[:500]
        time.sleep(2)
    raise RuntimeError(f"headrace repair failed: {said}")


def switch_to_wal(site: Site, _: Event) -> Done:
    """Ask for the other mode of capture, under load."""
    site.mode = "wal"
    with site.project() as project:
        project.set("cdc_mode", site.mode)
    return Done("headrace set cdc_mode wal")


def locked_table(site: Site, event: Event) -> Done:
    """A reader keeps a served table locked."""
    name = event.random().choice(sorted(STREAM_TABLES))
    with site.connect(name="soak lock") as connection, connection.transaction():
        connection.execute(f"LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE".encode())
        time.sleep(event.hold)
    return Done(f"{name} locked for {event.hold} s")


FAULTS: dict[str, Fault] = {
    "kill_daemon": kill_daemon,
    "stop_daemon": stop_daemon,
    "pause_daemon": pause_daemon,
    "kill_jvm": kill_jvm,
    "cut_sessions": cut_sessions,
    "kill_backend": kill_backend,
    "restart_server": restart_server,
    "crash_server": crash_server,
    "full_disk": full_disk,
    "lost_read_right": lost_read_right,
    "lost_capture_right": lost_capture_right,
    "lost_capture": lost_capture,
    "lost_file": lost_file,
    "locked_table": locked_table,
    **{name: lambda site, event, act=act: Done(act(site, event)) for name, act in ddl.DDL.items()},
}
# Faults that end the daemon or its JVM.
ENDING = frozenset({"kill_daemon", "stop_daemon", "kill_jvm"})
