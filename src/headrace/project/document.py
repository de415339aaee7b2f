"""Plans and wishes as JSON documents, and back: what a saved plan and a request carry."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headrace.catalog.records import RefreshMode
from headrace.errors import UserError
from headrace.files.private import users_umask
from headrace.lifecycle.planned_table import TableRequest
from headrace.project.plan import Act, ProjectPlan, TableChange
from headrace.project.read import DefinedTable


def plan_document(plan: ProjectPlan) -> dict[str, Any]:
    return {
        "folder": plan.folder,
        "prune": plan.prune,
        "fingerprint": {"wishes": plan.wishes, "catalog": plan.catalog},
        "nothing_to_do": plan.nothing_to_do,
        "changes": [
            {
                "act": one.act.value,
                "table": one.table,
                "schema": one.name[0],
                "name": one.name[1],
                "reason": one.reason,
                "options": dict(one.options),
                "anew": list(one.anew),
                "place": one.place,
            }
            for one in plan.changes
        ],
    }


def plan_of(document: Mapping[str, Any]) -> ProjectPlan:
    return ProjectPlan(
        str(document["folder"]),
        bool(document["prune"]),
        str(document["fingerprint"]["wishes"]),
        str(document["fingerprint"]["catalog"]),
        tuple(
            TableChange(
                Act(one["act"]),
                (one["schema"], one["name"]),
                one["reason"],
                dict(one["options"]),
                tuple(one["anew"]),
                one["place"],
            )
            for one in document["changes"]
        ),
    )


def save_plan(plan: ProjectPlan, file: Path) -> None:
    """Write the plan to a file, for `load_plan`."""
    text = json.dumps(plan_document(plan), indent=2, ensure_ascii=False) + "\n"
    try:
        with users_umask():
            file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError("invalid-option", f"{file} cannot be written", detail=str(error)) from None


def load_plan(file: Path) -> ProjectPlan:
    """The plan that was saved in a file."""
    try:
        return plan_of(json.loads(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise UserError("invalid-option", f"{file} cannot be read", detail=str(error)) from None
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            "invalid-option",
            f"{file} is not a plan",
            detail=f"{type(error).__name__}: {error}.",
            hint="Plans are written by `headrace plan --out FILE`.",
        ) from None


def wishes_document(wanted: Sequence[DefinedTable]) -> list[dict[str, Any]]:
    return [
        {
            "schema": one.name[0],
            "name": one.name[1],
            "as": one.request.name,
            "query": one.request.query,
            "schedule": one.request.schedule,
            "refresh_mode": one.request.refresh_mode.value,
            "options": dict(one.request.options),
            "initialize": one.request.initialize,
            "file": one.file,
            "line": one.line,
        }
        for one in wanted
    ]


def wishes_of(documents: Sequence[Mapping[str, Any]]) -> tuple[DefinedTable, ...]:
    return tuple(
        DefinedTable(
            (one["schema"], one["name"]),
            TableRequest(
                one["as"],
                one["query"],
                one["schedule"],
                RefreshMode(one["refresh_mode"]),
                dict(one["options"]),
                one["initialize"],
            ),
            one["file"],
            one["line"],
        )
        for one in documents
    )
