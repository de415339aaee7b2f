"""The exit codes of `headrace`; an error's code follows from its branch."""

from __future__ import annotations

from headrace.errors import BRANCHES

DONE = 0
NOT_EQUAL = NOT_WELL = 1
USAGE = 2
STOPPED = 130
READER_GONE = 141

EXITS: tuple[tuple[int, str], ...] = (
    (DONE, "Done."),
    (
        NOT_EQUAL,
        "`verify` or `demo` found a stream table that is not what its query says,"
        " or `health` that something is critical.",
    ),
    *((branch.exit_code, f"{branch.__name__}: {branch.__doc__}") for branch in BRANCHES),
    (STOPPED, "Stopped by Ctrl-C, or by answering no."),
    (READER_GONE, "Whoever was reading the output closed it."),
)

SUMMARY = (
    "Exit codes: 0 done, 1 verify found a difference or health a fault, 2 the request is wrong, "
    "3 a source changed its shape, 4 try again, 5 something outside is missing, "
    "6 a new copy of the data is needed, 70 a bug, 130 stopped by Ctrl-C. docs/cli.md has them all."
)
