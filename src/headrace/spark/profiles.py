"""The settings of our Spark sessions, as data.

`PINNED` fixes what a query means and how values are stored; a profile fixes how it is run.
No setting that changes a result is left to a user's own Spark defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

Profile = Literal["tiny", "wide"]

MEANING = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    # A constant that holds ${x} is text, not a variable.
    "spark.sql.variable.substitute": "false",
}

# A missing or corrupt file must fail the query: skipped, it would be lost rows.
# CORRECTED: dates and timestamps from the year 1 on are the same numbers in every engine.
STORAGE = {
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.compression.codec": "snappy",
}

# Paths come from the log: above the threshold Spark would run a job to list them again.
TRANSPORT = {
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
    "spark.sql.redaction.options.regex": "(?i)url|secret|password|token|conninfo",
    "spark.sql.ui.explainMode": "simple",
}

PINNED: Mapping[str, str] = MappingProxyType({**MEANING, **STORAGE, **TRANSPORT})

# One partition from the scan to the result. Inputs are coalesced to one partition and a union keeps
# it, so no plan has an exchange: one stage, one task. Expressions are compiled (unless there are
# few rows), whole stages are not: their generated code is new to the JVM's compiler in every query,
# and a few thousand rows are done before the code is fast. Input rows stay out of the plan, where
# the optimiser would compare and evaluate them repeatedly. Spark then assumes that they are many,
# and would exchange what seems too much for one partition. With evaluators Spark does not scan the
# closures of its own operators in every query. The excluded rules move joins below the operators
# that keep rows in one partition, or replace them by joins without that property.
_EXCHANGING = (
    "EliminateOuterJoin",
    "PushDownLeftSemiAntiJoin",
    "PushLeftSemiLeftAntiThroughJoin",
)
_TINY = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.files.minPartitionNum": "1",
    "spark.sql.files.maxPartitionBytes": str(1 << 40),
    "spark.sql.files.openCostInBytes": "0",
    "spark.sql.unionOutputPartitioning": "true",
    "spark.sql.optimizer.excludedRules": ",".join(
        f"org.apache.spark.sql.catalyst.optimizer.{rule}" for rule in _EXCHANGING
    ),
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.execution.usePartitionEvaluator": "true",
    "spark.sql.execution.arrow.localRelationThreshold": "0",
    "spark.sql.defaultSizeInBytes": "1",
    "spark.sql.maxSinglePartitionBytes": str((1 << 63) - 1),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000000",
}

# Evaluation of expressions in queries of one task. Their code is generated again in every query
# before the compiled class is looked up in a cache; for few rows interpreting is faster.
COMPILED: Mapping[str, str] = MappingProxyType(
    {
        "spark.sql.codegen.factoryMode": "FALLBACK",
        "spark.sql.subexpressionElimination.enabled": "true",
    }
)
INTERPRETED: Mapping[str, str] = MappingProxyType(
    {
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.subexpressionElimination.enabled": "false",
    }
)
MOST_INTERPRETED = 5_000

# A few input rows are part of the plan, so that the planner knows their size; the optimiser would
# compare and evaluate many.
_WIDE = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.execution.arrow.localRelationThreshold": str(4 << 20),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
}

PROFILES: Mapping[Profile, Mapping[str, str]] = MappingProxyType(
    {"tiny": MappingProxyType(_TINY), "wide": MappingProxyType(_WIDE)}
)


def settings_of(profile: Profile) -> dict[str, str]:
    """Return all settings of a session of the profile."""
    if profile not in PROFILES:
        raise ValueError(f"unknown profile: {profile!r}")
    return {**PINNED, **PROFILES[profile]}
