"""Errors of our own code while it reads a query, as errors that a person can read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from headrace.errors import HeadraceError, InternalError
from headrace.query.parse import too_deep


@contextmanager
def guarded() -> Iterator[None]:
    """Raise a HeadraceError for every exception: nothing is known of a query that is not read."""
    try:
        yield
    except HeadraceError:
        raise
    except RecursionError:
        raise too_deep() from None
    except Exception as error:
        raise InternalError(
            "internal-error",
            f"the query could not be read: {type(error).__name__}",
            detail=str(error) or None,
            hint="This is a mistake in Headrace. Write the query in another form.",
        ) from error
