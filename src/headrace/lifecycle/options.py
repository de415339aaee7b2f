"""The options of stream tables: which there are, and what their values mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.catalog.records import RefreshMode
from headrace.errors import UserError

OPTIONS = ("schedule", "refresh_mode")


def refuse_unknown(options: Mapping[str, Any]) -> None:
    """An option that does not exist is an error."""
    for option in options:
        if option not in OPTIONS:
            raise UserError(
                "invalid-option",
                f"unknown option {option!r}",
                hint=f"The options are {' and '.join(OPTIONS)}.",
            )


def refresh_mode(text: str | None) -> RefreshMode:
    """The mode of that name; None is the default."""
    try:
        return RefreshMode.AUTO if text is None else RefreshMode(text.upper())
    except ValueError:
        raise UserError(
            "invalid-option",
            f"refresh_mode {text!r} does not exist",
            hint="The modes are AUTO, DIFFERENTIAL and FULL.",
        ) from None
