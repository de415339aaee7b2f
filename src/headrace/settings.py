"""Settings: where things are (`Places`, per process) and how a project behaves (`Settings`)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from headrace.boundary.arguments import LONGEST_SECONDS, check_text, is_zone
from headrace.errors import UserError

DEFAULT_HOME = Path(".headrace")

# Settings are counted in PostgreSQL's integer; megabytes of it are still a bigint of bytes.
MOST = 2**31 - 1


class Places(BaseSettings):
    """What `connect` needs: its arguments, else HEADRACE_… variables, else headrace.toml.

    A connection string may be a reference: `env:NAME` or `file:PATH` name where it is kept, so
    that no password has to stand in a project file.
    """

    model_config = SettingsConfigDict(env_prefix="HEADRACE_", extra="forbid")

    home: Path = DEFAULT_HOME
    dsn: SecretStr | None = None
    setup_dsn: SecretStr | None = None
    spark: str | None = None
    store: str | None = None

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        given = init_settings()
        home = Path(given.get("home") or env_settings().get("home") or DEFAULT_HOME)
        file = TomlConfigSettingsSource(settings_cls, home / "headrace.toml")
        return init_settings, env_settings, file


def resolve(reference: str) -> str:
    """A connection string, looked up where a reference says that it is kept."""
    kind, _, place = reference.partition(":")
    try:
        match kind:
            case "env":
                found = os.environ[place]
            case "file":
                found = Path(place).expanduser().read_text(encoding="utf-8").strip()
            case _:
                found = reference
    except (KeyError, OSError, ValueError, RuntimeError) as error:
        raise UserError(
            "invalid-dsn",
            f"no connection string can be read from {kind}:{place}",
            detail=type(error).__name__,
        ) from None
    check_text(found)
    return found


def places(**given: Any) -> Places:
    """The places with these arguments given; what is None is looked up elsewhere."""
    try:
        return Places(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        raise _invalid(error) from None
    except (OSError, ValueError) as error:
        raise UserError(
            "invalid-option",
            "headrace.toml of the home folder cannot be read",
            detail=str(error),
            hint="Mend or remove it.",
        ) from None


class Settings(BaseModel):
    """How a project behaves; kept in the catalog, changed by `hr.set`."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    max_buffer_mb: int = Field(
        1024,
        gt=0,
        le=MOST,
        description="Size at which a source's change buffer stops growing and the source is copied"
        " anew instead, so that a stopped Headrace never fills the source's disk.",
    )
    compact_threshold: int = Field(
        100_000,
        gt=0,
        le=MOST,
        description="Rows of a source's change buffer from which on the server sums them up before"
        " they are read, if a sample of them says that at least half would be left out: what came"
        " and went again is never transferred, and not kept in the log.",
    )
    unlogged_buffers: bool = Field(
        False,
        description="Change buffers without WAL: cheaper writes for the application, but a crash of"
        " the server empties them and the source is copied again. Buffers that exist are converted"
        " after the next cut, or by `headrace cdc --convert`.",
    )
    cdc_mode: Literal["trigger", "auto", "wal"] = Field(
        "trigger",
        description="How changes of sources are captured: by triggers that write into a buffer"
        " (trigger), from the server's log wherever that is possible (auto), or from the log only:"
        " a source for which it is not possible is refused (wal). For tables that do not say it"
        " themselves.",
    )
    wal_transition_timeout: float = Field(
        300.0,
        gt=0,
        le=LONGEST_SECONDS,
        description="Seconds that a source may take on its way from triggers to the log. After"
        " that it stays with triggers, and says why.",
    )
    auto_replica_identity: bool = Field(
        False,
        description="A source that could be followed in the log but for its replica identity is"
        " given REPLICA IDENTITY FULL. Off, because it changes a table of the application, whose"
        " updates and deletes then write whole old rows to the log.",
    )
    slot_lag_warning_threshold_mb: int = Field(
        100,
        gt=0,
        le=MOST,
        description="Log that the replication slot of a database holds back from which on"
        " `headrace cdc` warns.",
    )
    slot_lag_critical_threshold_mb: int = Field(
        1024,
        gt=0,
        le=MOST,
        validate_default=True,
        description="Log that the replication slot of a database holds back at which it is let go:"
        " its sources are captured by triggers again and copied anew, so that the server's disk"
        " does not fill. More than `slot_lag_warning_threshold_mb`.",
    )
    collect_rows: int = Field(
        500_000,
        gt=0,
        le=MOST,
        description="Changes up to this many rows come back to the driver; larger ones are"
        " written by the executors.",
    )
    copy_parts: int = Field(
        16, gt=0, le=MOST, description="Number of parts that a source is copied in, side by side."
    )
    history_retention: float = Field(
        86_400.0,
        ge=0,
        le=LONGEST_SECONDS,
        description="Seconds for which files that were summed up into others are kept, for readers"
        " that hold on to an older state, such as a DataFrame that `hr.table` gave. A day is longer"
        " than any query should take.",
    )
    refresh_history_lines: int = Field(
        2_000,
        gt=0,
        le=MOST,
        description="Lines of the refresh history, and receipts, that are kept of each stream"
        " table. A line takes one or two kilobytes, so that a table has some megabytes at most."
        " What the choice between incremental and full rests on is kept beyond that.",
    )
    refresh_history_age: float = Field(
        2_592_000.0,
        ge=0,
        le=LONGEST_SECONDS,
        description="Seconds for which lines of the refresh history and receipts are kept, 30 days"
        " if not given; the latest of each stream table stay.",
    )
    lease_wait: float = Field(
        60.0,
        ge=0,
        le=LONGEST_SECONDS,
        description="Seconds to wait while another process is writing.",
    )
    allow_circular: bool = Field(
        False,
        description="Stream tables may read each other, or themselves: they then hold their least"
        " fixed point, every row once. Off, because a circle is more often a mistake.",
    )
    max_fixpoint_iterations: int = Field(
        100,
        gt=0,
        le=MOST,
        description="Rounds after which tables that read each other are taken for endless: the"
        " refresh fails and publishes nothing.",
    )
    max_recursion_levels: int = Field(
        1000,
        gt=0,
        le=MOST,
        description="Levels after which a recursive query is taken for endless: the refresh fails"
        " and publishes nothing.",
    )
    enable_stratum_skip: bool = Field(
        True,
        description="A stratum is skipped as a whole, without a query, if no change that its tables"
        " can see comes from below. Off, every table is looked at by itself, whenever a table that"
        " it reads was refreshed.",
    )
    stratified_cycle_validation: bool = Field(
        True,
        description="Tables that read each other may use NOT EXISTS, EXCEPT or aggregates on what"
        " stands outside their circle. Off, members of a circle may not use them at all.",
    )
    access_path: Literal["auto", "probe", "index", "pruned", "scan", "whole"] = Field(
        "auto",
        description="How a refresh gets at the rows that a change joins with: by PostgreSQL's index"
        " on the source (probe), by an index of our own beside the files (index), by reading the"
        " column of the key where the statistics of a file allow one of the keys (pruned) or all of"
        " it (scan), by letting Spark read all (whole), or by whichever is likely the fastest."
        " Where the one asked for cannot be had, the next one is taken.",
    )
    stratified_dred: bool = Field(
        True,
        description="Recursive queries with NOT EXISTS, EXCEPT or aggregates on other tables are"
        " maintained incrementally. Off, such a recursion is computed anew.",
    )
    diamond_consistency: Literal["atomic", "none"] = Field(
        "atomic",
        description="Stream tables in which ways from one source meet are published together with"
        " the tables on those ways (atomic), so that each source is seen at one moment, or each by"
        " itself (none). For tables that do not say it themselves; a group is atomic only if all"
        " of its tables are.",
    )
    diamond_schedule_policy: Literal["fastest", "slowest"] = Field(
        "fastest",
        description="An atomic group is due when any of its tables is (fastest) or when all that"
        " have a schedule are (slowest). For tables in which ways meet that do not say it"
        " themselves.",
    )
    default_tier: Literal["hot", "warm", "cold", "frozen", "auto"] = Field(
        "hot",
        description="How closely tables follow their schedules: every time (hot), every second time"
        " (warm), only if they were read since (cold), not until they are read (frozen), or by how"
        " often they are read (auto). For tables that do not say it themselves.",
    )
    lazy_refresh_timeout: float = Field(
        5.0,
        gt=0,
        le=LONGEST_SECONDS,
        description="Seconds within which a read of a cold or frozen table is followed by a"
        " refresh of it. Also the least time between two refreshes that reads ask for.",
    )
    time_zone: str = Field(
        "UTC", description="Time zone of cron lines that name none, such as Europe/Berlin."
    )
    max_failures: int = Field(
        5,
        gt=0,
        le=MOST,
        description="Failures in a row after which a table is suspended until `resume`. What may"
        " pass by itself is tried four times as often; while a server is away, nothing is"
        " suspended.",
    )
    max_change_rows: int | None = Field(
        None,
        gt=0,
        le=MOST,
        description="Changed rows of its inputs that a table takes in with one refresh at most:"
        " more suspend it until `resume`, so that a mistake in a source does not spread. Changes of"
        " columns that it does not read do not count. For tables that do not say it themselves.",
    )
    workers: int = Field(
        4,
        gt=0,
        le=MOST,
        description="Refreshes that a daemon runs side by side, and tables of one group that are"
        " computed side by side. More keep more of Spark's and PostgreSQL's cores busy, and take"
        " more memory.",
    )

    @field_validator("time_zone")
    @classmethod
    def _exists(cls, name: str) -> str:
        if not is_zone(name):
            raise ValueError("there is no such time zone")
        return name

    @field_validator("slot_lag_critical_threshold_mb")
    @classmethod
    def _after_the_warning(cls, critical: int, info: ValidationInfo) -> int:
        warning = info.data.get("slot_lag_warning_threshold_mb")
        if warning is not None and critical <= warning:
            raise ValueError(f"must be more than slot_lag_warning_threshold_mb, which is {warning}")
        return critical

    @staticmethod
    def of(values: dict[str, Any]) -> Settings:
        """The defaults with these values changed."""
        try:
            return Settings(**values)
        except ValidationError as error:
            raise _invalid(error) from None


def _invalid(error: ValidationError) -> UserError:
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"])
    known = ", ".join(Settings.model_fields)
    return UserError(
        "invalid-option",
        f"setting {name}: {first['msg'].lower()}",
        hint=f"The settings of a project are {known}; see docs/settings.md.",
    )
