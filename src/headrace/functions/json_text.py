"""A jsonb as Python values, its numbers with the digits that are written."""

from __future__ import annotations

import json
from typing import Any


class Number(str):
    """A number as it is written."""

    @property
    def is_whole(self) -> bool:
        return self.lstrip("-").isdigit()


def parsed(text: str) -> Any:
    return json.loads(text, parse_int=Number, parse_float=Number)
