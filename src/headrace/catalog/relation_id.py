"""Names for relations."""

from __future__ import annotations

import base64
import secrets

_BYTES = 10  # 80 random bits are sixteen base32 digits without padding


def new_relation_id() -> str:
    """Return a new name: `r` and 16 of [a-z2-7], safe as name of a folder, file or view."""
    return "r" + base64.b32encode(secrets.token_bytes(_BYTES)).decode().lower()
