"""Stream tables in SQL: CREATE, ALTER, DROP, REFRESH and VERIFY STREAM TABLE, read from text."""

from headrace.statements.parse import parse
from headrace.statements.statement import (
    AlterStatement,
    CreateStatement,
    DropStatement,
    RefreshStatement,
    Statement,
    VerifyStatement,
)

__all__ = [
    "AlterStatement",
    "CreateStatement",
    "DropStatement",
    "RefreshStatement",
    "Statement",
    "VerifyStatement",
    "parse",
]
