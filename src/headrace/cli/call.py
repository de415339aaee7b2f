"""One invocation of a command: where the project is, how to print, and the open project."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.cli.screen import Activity, Screen
from headrace.files.private import use_users_umask

if TYPE_CHECKING:
    from headrace.api import Headrace


@dataclass(frozen=True)
class GlobalOptions:
    """The options that every command has, as far as they were given."""

    home: Path | None = None
    dsn: str | None = None
    setup_dsn: str | None = None
    spark: str | None = None
    store: str | None = None
    json: bool = False

    def over(self, other: GlobalOptions) -> GlobalOptions:
        """Return these options, with those of `other` where these are not given."""
        return GlobalOptions(
            **{name: getattr(self, name) or getattr(other, name) for name in vars(self)}
        )

    @property
    def places(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "json"}


class Invocation:
    """What a command function gets as its first argument."""

    def __init__(self, options: GlobalOptions) -> None:
        self.given = options
        self.screen = Screen(as_json=options.json)
        self.activity = Activity(self.screen)

    @property
    def home(self) -> Path:
        """The home folder, known without reading any settings."""
        from_environment = os.environ.get("HEADRACE_HOME")
        return Path(self.given.home or from_environment or ".headrace").expanduser().absolute()

    def doing(self, about: str) -> AbstractContextManager[None]:
        """Show what is going on while the block runs, on a terminal."""
        return self.activity.doing(about)

    @contextmanager
    def project(self, *, make: bool = False, changes: bool = False) -> Iterator[Headrace]:
        """Open the project for the block; a missing one is created only if requested.

        A command that `changes` something may be the first in a database that was named.
        """
        with self.doing(f"opening {self.home}"):
            project = self._open(make, changes)
        with project:
            yield project

    def _open(self, make: bool, changes: bool) -> Headrace:
        from headrace.api import connect
        from headrace.cli.log import keep_log
        from headrace.settings import places

        where = places(**self.given.places)
        keep_log(self.home)
        if where.store is not None:
            # Other accounts, a cluster's say, may have to read a store of the user's own choice.
            use_users_umask()
        create = make or (changes and where.dsn is not None)
        return connect(**self.given.places, create=create, progress=self.activity)
