"""Whether receipts prove that a table was verified already, as far as requested. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from headrace.catalog.records import Receipt
from headrace.publish.partition_scheme import Scheme
from headrace.verify.comparison import SOURCE
from headrace.verify.oracle import Oracle
from headrace.verify.sample import SampleRequest, buckets_of, ranges_asked


def covers(
    covered: Mapping[str, Any] | None,
    request: SampleRequest | None,
    scheme: Scheme | None = None,
) -> bool:
    """Return whether a receipt that covers so much answers a request; None stands for all rows.

    `scheme` is how the table is partitioned now: it says which ranges values stand for.
    """
    if covered is None or request is None:
        return covered is None
    if request.column not in (None, covered.get("column")):
        return False
    if request.share is None:
        ranges = ranges_asked(request, scheme)
        if ranges is not None and covered.get("partition_by") != str(ranges):
            return False
        if covered.get("without_rows"):
            return False
        return set(request.values) <= set(covered.get("values", ()))
    return covered.get("buckets") == buckets_of(request.share)


def is_verified(
    receipts: Iterable[Receipt],
    since: datetime,
    oracle: Oracle,
    sample: SampleRequest | None = None,
    *,
    source: bool = False,
    scheme: Scheme | None = None,
) -> bool:
    """Return whether a table was found equal since then, by this oracle and as far as requested.

    `receipts` begin with the newest. A table that was found different after it was found equal has
    to be verified again.
    """
    for receipt in receipts:
        if receipt.verified_at < since or not receipt.equal:
            return False
        has_sources = any(name.startswith(SOURCE) for name in receipt.detail)
        if (
            receipt.oracle == oracle
            and covers(receipt.covered, sample, scheme)
            and (has_sources or not source)
        ):
            return True
    return False
