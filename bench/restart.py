"""How soon a daemon serves again after its server was away: `make bench-restart`.

The server is stopped under a daemon for some seconds and started again; the clock runs from the
moment at which the server takes connections until a row that is committed then is served.
`ARGS='2 60'` says for how many seconds the server is away, one after the other.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

import psycopg

import headrace
from bench.daemon import SOURCE, say, serving, tables, wait_for, write
from headrace.embedded import EmbeddedServer

AWAY = (2, 20, 60)


def restarted(server: EmbeddedServer, home: Path, away: float) -> EmbeddedServer:
    """The server, after it was stopped for so many seconds."""
    server.close()
    time.sleep(away)
    return EmbeddedServer.open(home)


def main(arguments: list[str]) -> None:
    result = []
    with tempfile.TemporaryDirectory(prefix="headrace-bench-", ignore_cleanup_errors=True) as name:
        home = Path(name) / "server"
        server = EmbeddedServer.open(home)
        with headrace.connect(server.dsn, home=Path(name) / "project") as hr:
            with psycopg.connect(server.dsn, autocommit=True) as sql:
                sql.execute("CREATE TABLE t (k int, at bigint)")
            with tables(hr, {"one": SOURCE}, "1s") as names, serving(hr):
                with psycopg.connect(server.dsn, autocommit=True) as sql:
                    wait_for(sql, names, write(sql))
                for away in map(float, arguments or AWAY):
                    say(f"the server is away for {away:g} s")
                    server = restarted(server, home, away)
                    began = time.perf_counter()
                    with psycopg.connect(server.dsn, autocommit=True) as sql:
                        seconds = wait_for(sql, names, write(sql)) - began
                    result.append({"away_s": away, "served_after_s": round(seconds, 2)})
        server.close()
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
