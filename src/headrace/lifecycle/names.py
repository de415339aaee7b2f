"""Names of stream tables: written as in SQL, kept as PostgreSQL folds them."""

from __future__ import annotations

from headrace.errors import UserError

MAXIMUM_BYTES = 63
RESERVED = ("headrace", "headrace_capture", "information_schema")


def parse_name(text: str, default_schema: str) -> tuple[str, str]:
    """Return (schema, name) of `name` or `schema.name`; double quotes keep a part unchanged."""
    parts = name_parts(text)
    if len(parts) not in (1, 2):
        raise _invalid(text, "it must be a name or schema.name")
    schema, name = (default_schema, parts[0]) if len(parts) == 1 else (parts[0], parts[1])
    for part in (schema, name):
        if not part:
            raise _invalid(text, "a part of it is empty")
        if len(part.encode()) > MAXIMUM_BYTES:
            raise _invalid(text, f"it is longer than {MAXIMUM_BYTES} bytes")
        if "\0" in part:
            raise _invalid(text, "it contains a NUL character")
    if is_reserved(schema):
        raise _invalid(text, f"schema {schema} is reserved")
    return schema, name


def quoted_name(schema: str, name: str) -> str:
    """Return the name in double quotes, so that `parse_name` reads it back."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in (schema, name))


def is_reserved(schema: str) -> bool:
    """Return whether a schema is Headrace's own or PostgreSQL's."""
    return schema in RESERVED or schema.startswith("pg_")


def _invalid(text: str, why: str) -> UserError:
    return UserError(
        "invalid-name",
        f"{text!r} cannot be the name of a stream table: {why}",
        hint='Write it as in SQL: totals, sales.totals or "Sales"."Totals".',
    )


def name_parts(text: str) -> list[str]:
    """Return the dot-separated parts; unquoted letters are folded to lower case."""
    parts, current, quoted, was_quoted, position = [], "", False, False, 0
    while position < len(text):
        character = text[position]
        if quoted and text[position : position + 2] == '""':
            current, position = current + '"', position + 1
        elif character == '"':
            quoted, was_quoted = not quoted, True
        elif character == "." and not quoted:
            parts.append(current)
            current, was_quoted = "", False
        elif quoted or was_quoted:
            current += character
        elif character.isalnum() or character in "_$":
            current += character.lower() if character.isascii() else character
        else:
            raise _invalid(text, f"{character!r} needs double quotes around the name")
        position += 1
    if quoted:
        raise _invalid(text, "a double quote is missing")
    return [*parts, current]
