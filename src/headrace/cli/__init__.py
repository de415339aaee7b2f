"""The command line: `main` reads it, `commands/` act, the rest is how results and failures look."""
