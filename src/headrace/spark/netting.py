"""SQL that sums the weights of equal rows: the net rows of a log, and the difference of two.

net(R)            = the rows of R by value, weights summed, zeros dropped
difference(N, O)  = net(N − O)
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.spark.schema import WEIGHT
from headrace.spark.views import quoted

FLOATS = ("FLOAT", "DOUBLE")


def net_sql(view: str, columns: Sequence[tuple[str, str]]) -> str:
    """The net rows of a view with the columns (name, Spark type) and `_weight`.

    Floats are grouped by their text: grouped by value, -0.0 and 0.0 would be one row, and Spark
    gives it back as 0.0. The text of a float tells all values apart, NaN being one value.
    """
    return _net(quoted(view), columns)


def difference_sql(new: str, old: str, columns: Sequence[tuple[str, str]]) -> str:
    """What turns the bag of one view into that of the other: new rows +, vanished rows −."""
    names = [quoted(name) for name, _ in columns]
    weight = quoted(WEIGHT)
    both = (
        f"(SELECT {', '.join([weight, *names])} FROM {quoted(new)}"
        f" UNION ALL SELECT {', '.join([f'-{weight}', *names])} FROM {quoted(old)})"
    )
    return _net(both, columns)


def _net(relation: str, columns: Sequence[tuple[str, str]]) -> str:
    kept = []
    keys = []
    for name, spark_type in columns:
        column = quoted(name)
        is_float = spark_type.upper() in FLOATS
        kept.append(f"any_value({column}) AS {column}" if is_float else column)
        keys.append(f"CAST({column} AS STRING)" if is_float else column)
    total = f"SUM({quoted(WEIGHT)})"
    groups = f" GROUP BY {', '.join(keys)}" if keys else ""
    return (
        f"SELECT {', '.join([f'{total} AS {quoted(WEIGHT)}', *kept])}"
        f" FROM {relation}{groups} HAVING {total} <> 0"
    )
