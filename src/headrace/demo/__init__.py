"""A small shop whose stream tables are kept fresh while it is open: what `headrace demo` shows."""
