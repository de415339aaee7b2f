"""A PostgreSQL that comes with the Python environment, for those who have none at hand.

    binaries     where the wheel keeps the server programs
    identity     as which operating-system user they run (PostgreSQL refuses root)
    sockets      a folder for the unix socket, short enough for the kernel
    locks        who has the server open, told by the kernel and so true after a crash too
    cluster      making the data folder, and the settings the server runs with
    supervisor   the parent process of the server; stops it when nobody has it open
    server       opening and closing: what the rest of Headrace uses

The server listens on a unix socket only, is shared by the processes that open the same home folder,
and is stopped with the last of them.
"""

from headrace.embedded.server import EmbeddedServer

__all__ = ["EmbeddedServer"]
