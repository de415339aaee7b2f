"""`headrace` and `python -m headrace`: a signal that comes while the rest is imported counts."""

import sys

from headrace.cli.early_stop import EARLY_STOP, command_of


def main() -> int:
    """Run the command line of this process and return its exit code."""
    if command_of(sys.argv[1:]) == "up":
        EARLY_STOP.install()
    from headrace.cli.main import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
