"""The options of stream tables: which there are, and what their values mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.boundary.arguments import LARGEST_COUNT
from headrace.errors import UserError
from headrace.publish.column_lists import as_list
from headrace.publish.partition_scheme import as_scheme

if TYPE_CHECKING:
    from headrace.catalog.records import RefreshMode

MODES = ("AUTO", "DIFFERENTIAL", "FULL")


@dataclass(frozen=True)
class Option:
    """An option: its meaning, the values that can be written, and the value that is kept of them.

    `keep` returns None for an invalid value.
    """

    name: str
    meaning: str
    values: str
    keep: Callable[[Any], Any]


def _one_of(*words: str) -> Callable[[Any], str | None]:
    """Return a parser of one of these words, written in any case."""
    by_lower = {word.lower(): word for word in words}
    return lambda value: by_lower.get(value.lower()) if isinstance(value, str) else None


def _count(value: Any) -> int | None:
    """Return a whole number above zero, also from text; None for any other value."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value) if len(value) <= len(str(LARGEST_COUNT)) else None
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 < value <= LARGEST_COUNT else None


def _flag(value: Any) -> bool | None:
    """Return true or false, also from text; None for any other value."""
    if isinstance(value, str):
        return {"true": True, "on": True, "false": False, "off": False}.get(value.lower())
    return value if isinstance(value, bool) else None


def _schedule(value: Any) -> str | None:
    """Return the text of a schedule, without the space around it."""
    from headrace.schedule.schedule import parse_schedule

    if not isinstance(value, str) or not value.strip():
        return None
    parse_schedule(value.strip(), "UTC")
    return value.strip()


def _up_to(most: int) -> Callable[[Any], int | None]:
    """Return a parser of whole numbers from 1 to `most`."""

    def keep(value: Any) -> int | None:
        count = _count(value)
        return count if count is not None and count <= most else None

    return keep


def _group(value: Any) -> str | None:
    """Return the name of a group, without the space around it."""
    name = value.strip() if isinstance(value, str) else ""
    return name if 0 < len(name) <= 63 and name.isprintable() else None


OPTIONS: tuple[Option, ...] = (
    Option(
        "schedule",
        "when the table is refreshed; only by hand if not given",
        "such as 30s, '*/5 * * * *' or calculated",
        _schedule,
    ),
    Option(
        "refresh_mode",
        "whether a refresh follows the change, recomputes, or chooses",
        "DIFFERENTIAL, FULL or AUTO",
        _one_of(*MODES),
    ),
    Option(
        "initialize",
        "whether the table is filled when it is created, or by its first refresh; only for CREATE",
        "true or false",
        _flag,
    ),
    Option(
        "diamond_consistency",
        "whether it is published as one with the tables that it meets again further down",
        "atomic or none",
        _one_of("atomic", "none"),
    ),
    Option(
        "diamond_schedule_policy",
        "when a group that comes together in it is due: with its first or its last member",
        "fastest or slowest",
        _one_of("fastest", "slowest"),
    ),
    Option(
        "group",
        "tables with the same are published as one, also without meeting further down",
        "a name of up to 63 characters",
        _group,
    ),
    Option(
        "tier",
        "how eagerly the table follows its schedule",
        "hot, warm, cold, frozen or auto",
        _one_of("hot", "warm", "cold", "frozen", "auto"),
    ),
    Option(
        "max_change_rows",
        "number of changed input rows beyond which the table is suspended",
        "a whole number from 1 to 9223372036854775807",
        _count,
    ),
    Option(
        "cdc_mode",
        "how changes of the sources that it reads are captured",
        "trigger, auto or wal",
        _one_of("trigger", "auto", "wal"),
    ),
    Option(
        "append_only",
        "whether the sources that it reads only gain rows; the first update or delete is reported",
        "true or false",
        _flag,
    ),
    Option(
        "unspecified_order",
        "whether LIMIT, array_agg and string_agg without ORDER BY are refused, or go by the values",
        "refuse or by_value",
        _one_of("refuse", "by_value"),
    ),
    Option(
        "partition_by",
        "the column by whose values its rows are kept apart, served and stored",
        "a column of the result; day, week, month or year(…), range(…, 1000) of one; source",
        as_scheme,
    ),
    Option(
        "partition_ahead",
        "so many ranges after the newest have a partition before their first row comes",
        "a whole number from 1 to 100",
        _up_to(100),
    ),
    Option(
        "partition_drop_empty",
        "whether a partition that loses its last row is dropped",
        "true or false",
        _flag,
    ),
    Option(
        "key",
        "columns that are unique together in the result: the served table has a unique index on"
        " them, by which publish finds rows; the key of the last GROUP BY if not given",
        "names of columns of the result, separated by commas",
        as_list,
    ),
    Option(
        "primary_key",
        "whether the key is the PRIMARY KEY of the served table",
        "true or false",
        _flag,
    ),
    Option(
        "include",
        "columns that the index of the key has beside it, for reads of the index alone",
        "names of columns of the result, separated by commas",
        as_list,
    ),
)
_BY_NAME = {option.name: option for option in OPTIONS}


def checked(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with the values to keep; None, the default, stays None.

    An option that does not exist, or a value that it cannot have, is an error.
    """
    checked_values: dict[str, Any] = {}
    for name, value in values.items():
        option = _BY_NAME.get(name)
        if option is None:
            raise UserError(
                "invalid-option", f"unknown option {name!r}", hint=f"The options are {_names()}."
            )
        checked_values[name] = None if value is None else option.keep(value)
        if value is not None and checked_values[name] is None:
            raise UserError(
                "invalid-option",
                f"invalid value for option {name}: {value!r}",
                hint=f"Valid values: {option.values}.",
            )
    return checked_values


def refresh_mode(text: str | None) -> RefreshMode:
    """Return the mode of that name; None is the default."""
    from headrace.catalog.records import RefreshMode

    return RefreshMode(checked({"refresh_mode": text})["refresh_mode"] or MODES[0])


def _names() -> str:
    *others, last = _BY_NAME
    return f"{', '.join(others)} and {last}"
