"""The commands, one file a group; `headrace.cli.main.COMMANDS` lists them."""
