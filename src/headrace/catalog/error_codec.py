"""Errors as JSON, so that a process can raise an error that occurred in another process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.errors import BRANCHES, HeadraceError, InternalError

_BY_NAME = {branch.__name__: branch for branch in BRANCHES}


def encode_error(error: HeadraceError) -> dict[str, Any]:
    """Return branch, code, message, detail and hint of an error, and the notes added to it."""
    return {
        "branch": type(error).__name__,
        "code": error.code,
        "message": error.message,
        "detail": error.detail,
        "hint": error.hint,
        "notes": list(getattr(error, "__notes__", ())),
    }


def decode_error(value: Mapping[str, Any]) -> HeadraceError:
    """Return the error that was encoded; one of a kind unknown here becomes an internal error."""
    branch, code, message = _BY_NAME.get(value["branch"]), value["code"], value["message"]
    if branch is None or code not in branch.codes:
        branch, code, message = InternalError, "invariant", f"{message} [{code}]"
    error = branch(code, message, detail=value["detail"], hint=value["hint"])
    for note in value["notes"]:
        error.add_note(note)
    return error
