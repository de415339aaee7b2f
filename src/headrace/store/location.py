"""Where the tables are: addresses for delta-rs and Spark, file systems, durable local writes."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow.fs as pafs
from deltalake.fs import DeltaStorageHandler

from headrace.errors import InternalError, UserError
from headrace.files.private import private_folder

# delta-rs decodes %xx and turns \ into / in local paths; Spark takes the others for patterns.
UNUSABLE = frozenset("%\\*?[]{}")
RELATION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
PROBE_BYTES = 65536


@dataclass(frozen=True)
class StoreLocation:
    """The root folder or URI; every relation is a folder in it."""

    root: str
    options: Mapping[str, str] = field(default_factory=dict)
    local: bool = True

    @classmethod
    def of(cls, root: str | Path, options: Mapping[str, str] | None = None) -> StoreLocation:
        """Return the location of a folder, as an absolute path, or of a URI, unchanged.

        delta-rs and Spark both read the URI: s3a:// and abfss:// mean the same to both.
        """
        text = str(root)
        scheme = urlsplit(text).scheme
        if "://" in text and scheme != "file":
            return cls(text.rstrip("/"), dict(options or {}), local=False)
        path = unquote(urlsplit(text).path) if scheme == "file" else str(Path(text).resolve())
        if bad := UNUSABLE & set(path):
            raise UserError(
                "invalid-option",
                f"store folder {path!r} contains unsupported characters: {' '.join(sorted(bad))}",
                hint="Choose another folder.",
            )
        return cls(path.rstrip("/") or "/", dict(options or {}), local=True)

    def uri(self, relation: str, *parts: str) -> str:
        """Return the address of a relation, or of a path inside its folder."""
        if not RELATION.fullmatch(relation):
            raise InternalError("invariant", f"{relation!r} is not a relation id")
        return "/".join((self.root, relation, *parts))

    def path_in(self, relation: str, uri: str) -> str:
        """Return the path of an address inside the relation's folder."""
        return self._below(self.uri(relation), uri)

    def path(self, uri: str) -> str:
        """Return the path of an address in `files`."""
        return self._below(self.root, uri)

    @cached_property
    def files(self) -> pafs.FileSystem:
        """Return a file system whose top is the root."""
        if self.local:
            return pafs.SubTreeFileSystem(self.root, pafs.LocalFileSystem())
        return pafs.PyFileSystem(DeltaStorageHandler(self.root, dict(self.options)))

    def prepare(self) -> None:
        """Make the root folder, closed to other users; an existing folder is left unchanged."""
        if self.local and not Path(self.root).exists():
            private_folder(Path(self.root))

    def remove(self, relation: str) -> None:
        """Remove the relation's folder with its contents, if it exists."""
        if self.local:
            if Path(self.uri(relation)).is_dir():
                shutil.rmtree(self.uri(relation))
        elif self.files.get_file_info(pafs.FileSelector(relation, allow_not_found=True)):
            self.files.delete_dir(relation)

    def make_durable(self, relation: str, paths: Iterable[str], *, new: bool = False) -> None:
        """Flush files and their folders to disk, with `new` the entry of the relation's folder too.

        The catalog's pin survives a power cut, so its files must be durable first. Object stores
        acknowledge only durable writes.
        """
        if not self.local:
            return
        files = [Path(self.uri(relation, path)) for path in paths]
        top = self.root if new else self.uri(relation)
        above = (parent for file in files for parent in file.parents)
        folders = dict.fromkeys(folder for folder in above if folder.is_relative_to(top))
        for path in (*files, *folders):
            force(path)

    def trouble(self, *, writing: bool) -> int | None:
        """Return the errno of using the root folder now; None if it works, or for an object store.

        delta-rs reports errors of the operating system as text only, so the access is repeated
        here.
        """
        if not self.local:
            return None
        try:
            next(Path(self.root).iterdir(), None)
            if writing:
                with tempfile.TemporaryFile(dir=self.root) as probe:
                    probe.write(b"\0" * PROBE_BYTES)
                    probe.flush()
                    os.fsync(probe.fileno())
        except OSError as error:
            return error.errno
        return None

    def _below(self, folder: str, uri: str) -> str:
        if not uri.startswith(folder + "/"):
            raise InternalError("invariant", f"{uri} is not inside {folder}")
        return uri[len(folder) + 1 :]


def force(path: Path) -> None:
    """Wait until a file's bytes, or a folder's entries, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
