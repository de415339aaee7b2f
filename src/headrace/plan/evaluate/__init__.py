"""The pure evaluator: a plan over small bags, straight from the definitions.

It is the third oracle beside Spark and PostgreSQL: no Spark, no SQL, no cleverness. A bag is a
Counter of row tuples whose counts are weights and may be negative.
"""

from headrace.plan.evaluate.evaluator import Bag, Evaluator, Read, Row, evaluate, net, scalar

__all__ = ["Bag", "Evaluator", "Read", "Row", "evaluate", "net", "scalar"]
