"""A constant in a query is the same value on Spark, whatever characters it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from headrace.algebra.scalar import Literal
from headrace.render.scalars import render_scalar
from headrace.spark.profiles import settings_of
from headrace.types import TEXT
from tests.functions.cases import VALUES
from tests.functions.comparison import same

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

STRINGS = (
    "\\", "\\\\", "\\n", "\n", "\t", "\r", "\x01", "'", "''", '"', "`", "\\'", "%", "\\%", "\\_",
    "${x}", "$1", "{{x}}", "--", "/* */", ";", "é", "日本", "😀", "\u200b", " ", "  a  ", "\\u0041",
    "\\0", "\\x41", "a\\", "\b", "\x1a", ":x", "?",
)  # fmt: skip


def test_constants_survive_rendering(spark: SparkSession) -> None:
    session = spark.newSession()
    for key, value in settings_of("tiny").items():
        session.conf.set(key, value)
    constants = [Literal(value, type_) for type_, values in VALUES.items() for value in values]
    constants += [Literal(text, TEXT) for text in STRINGS]
    shown = ", ".join(
        render_scalar(constant).sql(dialect="spark") + f" AS c{i}"
        for i, constant in enumerate(constants)
    )
    (row,) = session.sql(f"SELECT {shown}").toArrow().to_pylist()
    wrong = [
        (constant, row[f"c{i}"])
        for i, constant in enumerate(constants)
        if not same(constant.value, row[f"c{i}"], constant.type)
    ]
    assert not wrong
