"""Who gives the answer that a stream table is compared with."""

from __future__ import annotations

from enum import StrEnum

from headrace.errors import UserError


class Oracle(StrEnum):
    """Spark recomputes the query from the stored inputs; PostgreSQL answers it in a snapshot."""

    SPARK = "spark"
    POSTGRES = "postgres"


def oracle_of(value: str) -> Oracle:
    """Return the oracle with this name; raise `invalid-option` if there is none."""
    try:
        return Oracle(value.lower())
    except ValueError:
        raise UserError(
            "invalid-option",
            f"there is no oracle {value!r}",
            hint=f"Write one of {', '.join(Oracle)}.",
        ) from None
