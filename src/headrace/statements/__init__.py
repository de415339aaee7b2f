"""Stream tables in SQL: CREATE, ALTER, DROP and REFRESH STREAM TABLE, read from text."""

from headrace.statements.parse import parse
from headrace.statements.statement import Alter, Create, Drop, Refresh, Statement

__all__ = ["Alter", "Create", "Drop", "Refresh", "Statement", "parse"]
