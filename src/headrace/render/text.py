"""A query's tree as Spark SQL text."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.generator import Generator
from sqlglot.generators.spark import SparkGenerator

_SPARK = Spark()


class _Printer(SparkGenerator):
    """sqlglot's printer for trees that are written for Spark.

    Its own first rewrites what other dialects have and Spark has not, in each SELECT with all that
    is below it: the time grows with the square of the nesting. WITH is where it belongs already.
    """

    EXPRESSIONS_WITHOUT_NESTED_CTES: ClassVar[Any] = set()

    TRANSFORMS: ClassVar[Any] = {
        kind: printed
        for kind, printed in SparkGenerator.TRANSFORMS.items()
        if kind is not exp.Select
    }

    def identifier_sql(self, expression: exp.Identifier) -> str:
        name = expression.args["this"]
        plain = expression.args.get("quoted") and name.isidentifier()
        return f"`{name}`" if plain else super().identifier_sql(expression)

    def cast_sql(self, expression: exp.Cast, safe_prefix: str | None = None) -> str:
        return Generator.cast_sql(self, expression, safe_prefix=safe_prefix)

    def datatype_sql(self, expression: exp.DataType) -> str:
        """Print a plain type as it was printed before: sqlglot parses a name for each."""
        kind, parameters = expression.this, expression.expressions
        further = any(expression.args.get(name) for name in ("nested", "values", "kind"))
        if further or not all(isinstance(each, exp.DataTypeParam) for each in parameters):
            return super().datatype_sql(expression)
        key = (kind, *(each.name for each in parameters))
        if key not in _TYPES:
            _TYPES[key] = super().datatype_sql(expression)
        return _TYPES[key]


_TYPES: dict[tuple[object, ...], str] = {}


def text_of(query: exp.Query) -> str:
    """Return the query's text; the tree is used up."""
    return _Printer(dialect=_SPARK, pretty=True).generate(query, copy=False)
