"""The demo of `headrace demo`: a small shop whose stream tables are kept fresh while it is open."""
