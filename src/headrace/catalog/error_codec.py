"""Errors as JSON, so that one can be raised in another process than the one that it befell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.errors import BRANCHES, HeadraceError, InternalError

_BY_NAME = {branch.__name__: branch for branch in BRANCHES}


def encode_error(error: HeadraceError) -> dict[str, Any]:
    """Branch, code, message, detail, hint, and the notes that were added on the way."""
    return {
        "branch": type(error).__name__,
        "code": error.code,
        "message": error.message,
        "detail": error.detail,
        "hint": error.hint,
        "notes": list(getattr(error, "__notes__", ())),
    }


def decode_error(value: Mapping[str, Any]) -> HeadraceError:
    """The same error again; one of a version that knows more kinds becomes an internal error."""
    branch, code, message = _BY_NAME.get(value["branch"]), value["code"], value["message"]
    if branch is None or code not in branch.codes:
        branch, code, message = InternalError, "invariant", f"{message} [{code}]"
    error = branch(code, message, detail=value["detail"], hint=value["hint"])
    for note in value["notes"]:
        error.add_note(note)
    return error
