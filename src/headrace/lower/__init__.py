"""A plan as it is written, without queries inside expressions. Pure.

EXISTS, IN, ANY and ALL, scalar subqueries and LATERAL are defined row by row: for each row of the
enclosing query the inner one is evaluated. Lowering says the same with joins and aggregates, which
can be maintained.
"""

from headrace.lower.lower import lower
from headrace.lower.set_operations import as_matches

__all__ = ["as_matches", "lower"]
