"""Stream tables in SQL: CREATE, ALTER, DROP, REFRESH and VERIFY STREAM TABLE, read from text."""

from headrace.statements.parse import parse
from headrace.statements.statement import Alter, Create, Drop, Refresh, Statement, Verify

__all__ = ["Alter", "Create", "Drop", "Refresh", "Statement", "Verify", "parse"]
