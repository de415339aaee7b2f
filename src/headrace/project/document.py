"""Convert plans and definitions to JSON documents and back, for saved plans and requests."""

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
        "fingerprint": {"definitions": plan.definitions, "catalog": plan.catalog},
        "nothing_to_do": plan.nothing_to_do,
        "changes": [
            {
                "act": change.act.value,
                "table": change.table,
                "schema": change.name[0],
                "name": change.name[1],
                "reason": change.reason,
                "options": dict(change.options),
                "rebuilt": list(change.rebuilt_readers),
                "place": change.place,
            }
            for change in plan.changes
        ],
        "notices": list(plan.notices),
    }


def plan_of(document: Mapping[str, Any]) -> ProjectPlan:
    return ProjectPlan(
        str(document["folder"]),
        bool(document["prune"]),
        str(document["fingerprint"]["definitions"]),
        str(document["fingerprint"]["catalog"]),
        tuple(
            TableChange(
                Act(change["act"]),
                (change["schema"], change["name"]),
                change["reason"],
                dict(change["options"]),
                tuple(change["rebuilt"]),
                change["place"],
            )
            for change in document["changes"]
        ),
        # Plans that earlier versions saved have none.
        tuple(map(str, document.get("notices", ()))),
    )


def save_plan(plan: ProjectPlan, file: Path) -> None:
    """Write the plan to a file, for `load_plan`."""
    text = json.dumps(plan_document(plan), indent=2, ensure_ascii=False) + "\n"
    try:
        with users_umask():
            file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError("invalid-option", f"could not write {file}", detail=str(error)) from None


def load_plan(file: Path) -> ProjectPlan:
    """Return the plan that was saved in a file."""
    try:
        return plan_of(json.loads(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise UserError("invalid-option", f"could not read {file}", detail=str(error)) from None
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            "invalid-option",
            f"{file} is not a plan",
            detail=f"{type(error).__name__}: {error}.",
            hint="Write a plan with: headrace plan --out FILE",
        ) from None


def definitions_document(definitions: Sequence[DefinedTable]) -> list[dict[str, Any]]:
    return [
        {
            "schema": definition.name[0],
            "name": definition.name[1],
            "as": definition.request.name,
            "query": definition.request.query,
            "schedule": definition.request.schedule,
            "refresh_mode": definition.request.refresh_mode.value,
            "options": dict(definition.request.options),
            "initialize": definition.request.initialize,
            "file": definition.file,
            "line": definition.line,
        }
        for definition in definitions
    ]


def definitions_of(documents: Sequence[Mapping[str, Any]]) -> tuple[DefinedTable, ...]:
    return tuple(
        DefinedTable(
            (document["schema"], document["name"]),
            TableRequest(
                document["as"],
                document["query"],
                document["schedule"],
                RefreshMode(document["refresh_mode"]),
                dict(document["options"]),
                document["initialize"],
            ),
            document["file"],
            document["line"],
        )
        for document in documents
    )
