"""Functions by the names users write, and why the others are refused."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from headrace.query.clauses import CLOCK, SESSION, Refused
from headrace.query.refusal import refuse


@dataclass(frozen=True)
class Named:
    """A row of `headrace.functions.FUNCTIONS` that is called by a name, with so many arguments."""

    row: str
    arity: int


CALLABLE: dict[str, Named] = {
    "abs": Named("abs", 1),
    "char_length": Named("length", 1),
    "character_length": Named("length", 1),
    "length": Named("length", 1),
    "mod": Named("%", 2),
}

VOLATILE = Refused(
    "a volatile function",
    "Its result changes without any change of the data. Store the value in the source table.",
    "unsupported-function",
)
AGGREGATE = Refused(
    "this aggregate",
    "COUNT, SUM, AVG, MIN and MAX are maintained; see docs/sql.md.",
    "unsupported-function",
)
UNKNOWN = Refused(
    "this function",
    "See docs/sql.md for the functions and operators that are maintained.",
    "unsupported-function",
)
REFUSED_CALLS: dict[str, Refused] = {
    **dict.fromkeys(
        (
            "clock_timestamp",
            "now",
            "statement_timestamp",
            "timeofday",
            "transaction_timestamp",
        ),
        CLOCK,
    ),
    **dict.fromkeys(
        (
            "current_database",
            "current_setting",
            "inet_client_addr",
            "pg_backend_pid",
            "version",
        ),
        SESSION,
    ),
    **dict.fromkeys(
        (
            "currval",
            "gen_random_uuid",
            "lastval",
            "nextval",
            "pg_sleep",
            "random",
            "random_normal",
            "setseed",
            "setval",
            "txid_current",
            "uuidv4",
            "uuidv7",
        ),
        VOLATILE,
    ),
    **dict.fromkeys(
        (
            "any_value",
            "array_agg",
            "bit_and",
            "bit_or",
            "bit_xor",
            "bool_and",
            "bool_or",
            "corr",
            "covar_pop",
            "covar_samp",
            "every",
            "json_agg",
            "json_object_agg",
            "jsonb_agg",
            "jsonb_object_agg",
            "mode",
            "percentile_cont",
            "percentile_disc",
            "range_agg",
            "regr_avgx",
            "regr_avgy",
            "regr_count",
            "regr_intercept",
            "regr_r2",
            "regr_slope",
            "regr_sxx",
            "regr_sxy",
            "regr_syy",
            "stddev",
            "stddev_pop",
            "stddev_samp",
            "string_agg",
            "var_pop",
            "var_samp",
            "variance",
            "xmlagg",
        ),
        AGGREGATE,
    ),
}


def refuse_call(name: str, node: exp.Expr) -> Exception:
    """The error for a function that is not maintained, with the reason if it is known."""
    refused = REFUSED_CALLS.get(name, UNKNOWN)
    return refuse(refused.code, f"{name}: {refused.name} is not maintained", node, refused.hint)
