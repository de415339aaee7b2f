"""An embedded PostgreSQL from the Python environment, for users without a server.

    binaries     where the wheel keeps the server programs
    identity     the operating-system user that runs them (PostgreSQL refuses root)
    sockets      a folder for the unix socket, short enough for the kernel
    locks        file locks of the processes that have the server open, valid after crashes too
    cluster      the data folder and the settings of the server
    supervisor   the parent process of the server, which stops it after its last user
    server       opening and closing the server; the interface for other packages

The server listens on a unix socket only, is shared by the processes that open the same home folder,
and stops with the last of them.
"""

from headrace.embedded.server import EmbeddedServer

__all__ = ["EmbeddedServer"]
