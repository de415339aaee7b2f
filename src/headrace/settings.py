"""Settings: locations per process (`Places`), and the behaviour of a project (`Settings`)."""

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

# PostgreSQL's largest integer; as many megabytes still fit into a bigint of bytes.
MOST = 2**31 - 1


class Places(BaseSettings):
    """Locations for `connect`: its arguments, else HEADRACE_… variables, else headrace.toml.

    A connection string may be a reference, `env:NAME` or `file:PATH`, so that a project file needs
    no password.
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
        arguments = init_settings()
        home = Path(arguments.get("home") or env_settings().get("home") or DEFAULT_HOME)
        file = TomlConfigSettingsSource(settings_cls, home / "headrace.toml")
        return init_settings, env_settings, file


def resolve(reference: str) -> str:
    """Return the connection string that a reference names, or the string itself."""
    kind, _, place = reference.partition(":")
    try:
        match kind:
            case "env":
                dsn = os.environ[place]
            case "file":
                dsn = Path(place).expanduser().read_text(encoding="utf-8").strip()
            case _:
                dsn = reference
    except (KeyError, OSError, ValueError, RuntimeError) as error:
        raise UserError(
            "invalid-dsn",
            f"could not read a connection string from {kind}:{place}",
            detail=type(error).__name__,
        ) from None
    check_text(dsn)
    return dsn


def places(**arguments: Any) -> Places:
    """Return the locations with these arguments; None falls back to variables and file."""
    try:
        return Places(**{name: value for name, value in arguments.items() if value is not None})
    except ValidationError as error:
        raise _invalid(error) from None
    except (OSError, ValueError) as error:
        raise UserError(
            "invalid-option",
            "could not read headrace.toml in the home folder",
            detail=str(error),
            hint="Correct or remove the file.",
        ) from None


class Settings(BaseModel):
    """The behaviour of a project; stored in the catalog, changed by `hr.set`."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    max_buffer_mb: int = Field(
        1024,
        gt=0,
        le=MOST,
        description="Size at which a source's change buffer stops growing and the source is copied"
        " again instead, so that a stopped Headrace never fills the source's disk.",
    )
    compact_threshold: int = Field(
        100_000,
        gt=0,
        le=MOST,
        description="Rows of a source's change buffer from which on the server nets them before"
        " they are read, if a sample shows that at least half would cancel out: rows that came and"
        " went are then neither transferred nor logged.",
    )
    unlogged_buffers: bool = Field(
        False,
        description="Unlogged change buffers: cheaper writes for the application, but a crash of"
        " the server empties them and the source is copied again. Existing buffers are converted"
        " after the next cut, or by `headrace cdc --convert`.",
    )
    cdc_mode: Literal["trigger", "auto", "wal"] = Field(
        "trigger",
        description="How changes of sources are captured: by triggers that write into a buffer"
        " (trigger), from the WAL where possible (auto), or from the WAL only, which refuses other"
        " sources (wal). Default for stream tables without this option.",
    )
    wal_transition_timeout: float = Field(
        300.0,
        gt=0,
        le=LONGEST_SECONDS,
        description="Timeout in seconds of the transition of a source from triggers to the WAL."
        " After that the source stays with triggers, and its status has the reason.",
    )
    auto_replica_identity: bool = Field(
        False,
        description="Set REPLICA IDENTITY FULL on a source if only its replica identity prevents"
        " WAL mode. Off by default, because it changes a table of the application, whose updates"
        " and deletes then write whole old rows to the WAL.",
    )
    slot_lag_warning_threshold_mb: int = Field(
        100,
        gt=0,
        le=MOST,
        description="Megabytes of WAL retained by the replication slot of a database from which on"
        " `headrace cdc` warns.",
    )
    slot_lag_critical_threshold_mb: int = Field(
        1024,
        gt=0,
        le=MOST,
        validate_default=True,
        description="Megabytes of WAL retained by the replication slot of a database at which the"
        " slot is dropped: its sources are captured by triggers and copied again, so that the"
        " server's disk does not fill. More than `slot_lag_warning_threshold_mb`.",
    )
    collect_rows: int = Field(
        500_000,
        gt=0,
        le=MOST,
        description="Changes of up to this many rows are collected by the driver; larger ones are"
        " written by the executors.",
    )
    copy_parts: int = Field(
        16, gt=0, le=MOST, description="Number of parts in which a source is copied in parallel."
    )
    history_retention: float = Field(
        86_400.0,
        ge=0,
        le=LONGEST_SECONDS,
        description="Retention in seconds of files replaced by compaction, for readers of an older"
        " state, such as a DataFrame of `hr.table`. A day is longer than any query should take.",
    )
    refresh_history_lines: int = Field(
        2_000,
        gt=0,
        le=MOST,
        description="Number of lines of the refresh history, and of receipts, kept for each stream"
        " table. A line takes one or two kilobytes, so a table has a few megabytes at most. The"
        " costs behind the choice between incremental and full are kept longer.",
    )
    refresh_history_age: float = Field(
        2_592_000.0,
        ge=0,
        le=LONGEST_SECONDS,
        description="Retention in seconds of the refresh history and receipts, by default 30 days;"
        " the latest line of each stream table and that of its first filling are always kept.",
    )
    lease_wait: float = Field(
        60.0,
        ge=0,
        le=LONGEST_SECONDS,
        description="Timeout in seconds of waiting for another process that is writing.",
    )
    allow_circular: bool = Field(
        False,
        description="Allow stream tables to read each other, or themselves: they then hold their"
        " least fixed point, every row once. Off by default, because a cycle is often a mistake.",
    )
    max_fixpoint_iterations: int = Field(
        100,
        gt=0,
        le=MOST,
        description="Maximum number of rounds of a cycle: after that the refresh fails and"
        " publishes nothing.",
    )
    max_recursion_levels: int = Field(
        1000,
        gt=0,
        le=MOST,
        description="Maximum number of levels of a recursive query: after that the refresh fails"
        " and publishes nothing.",
    )
    enable_stratum_skip: bool = Field(
        True,
        description="Skip a stratum as a whole, without a query, if no lower stratum has a change"
        " that its tables can see. Off: every table is checked by itself whenever a table that it"
        " reads was refreshed.",
    )
    stratified_cycle_validation: bool = Field(
        True,
        description="Allow the tables of a cycle to use NOT EXISTS, EXCEPT or aggregates on"
        " relations outside the cycle. Off: they may not use them at all.",
    )
    access_path: Literal["auto", "probe", "index", "pruned", "scan", "whole"] = Field(
        "auto",
        description="Access path of a refresh to the rows that a change joins with: PostgreSQL's"
        " index on the source (probe), an own index beside the files (index), the key columns of"
        " the row groups that may hold a key by their statistics (pruned) or of all (scan), a full"
        " read by Spark (whole), or the likely fastest of them (auto). If the requested path is"
        " not available, the next one is used.",
    )
    stratified_dred: bool = Field(
        True,
        description="Maintain recursive queries with NOT EXISTS, EXCEPT or aggregates on other"
        " tables incrementally. Off: such a recursion is recomputed at every refresh.",
    )
    diamond_consistency: Literal["atomic", "none"] = Field(
        "atomic",
        description="Publish a stream table in which several paths from one source meet together"
        " with the tables on these paths, so that all show the same state of the source (atomic),"
        " or each by itself (none). Default for stream tables without this option; a group is"
        " atomic only if all of its tables are.",
    )
    diamond_schedule_policy: Literal["fastest", "slowest"] = Field(
        "fastest",
        description="An atomic group is due when any of its tables is (fastest), or when all that"
        " have a schedule are (slowest). Default for tables in which paths meet without this"
        " option.",
    )
    default_tier: Literal["hot", "warm", "cold", "frozen", "auto"] = Field(
        "hot",
        description="How closely tables follow their schedules: every time (hot), every second"
        " time (warm), only if they were read since (cold), not until they are read (frozen), or"
        " by how often they are read (auto). Default for stream tables without this option.",
    )
    lazy_refresh_timeout: float = Field(
        5.0,
        gt=0,
        le=LONGEST_SECONDS,
        description="Seconds within which a read of a cold or frozen table triggers its refresh."
        " Also the minimum time between two refreshes triggered by reads.",
    )
    time_zone: str = Field(
        "UTC", description="Default time zone of cron schedules, such as Europe/Berlin."
    )
    max_failures: int = Field(
        5,
        gt=0,
        le=MOST,
        description="Number of consecutive failures after which a table is suspended until"
        " `resume`. Transient failures may be four times as many; while a server is unreachable,"
        " nothing is suspended.",
    )
    max_change_rows: int | None = Field(
        None,
        gt=0,
        le=MOST,
        description="Maximum number of changed input rows of one refresh: with more, the table is"
        " suspended until `resume`, so that a mistake in a source does not spread. Changes of"
        " columns that the table does not read do not count. Default for stream tables without"
        " this option.",
    )
    workers: int = Field(
        4,
        gt=0,
        le=MOST,
        description="Number of refreshes that a daemon runs in parallel, and of tables of one"
        " group computed in parallel. More workers use more cores of Spark and PostgreSQL, and"
        " more memory.",
    )

    @field_validator("time_zone")
    @classmethod
    def _exists(cls, name: str) -> str:
        if not is_zone(name):
            raise ValueError("unknown time zone")
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
        """Return the defaults with these values changed."""
        try:
            return Settings(**values)
        except ValidationError as error:
            raise _invalid(error) from None


def _invalid(error: ValidationError) -> UserError:
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"])
    names = ", ".join(Settings.model_fields)
    return UserError(
        "invalid-option",
        f"setting {name}: {first['msg'].lower()}",
        hint=f"The settings of a project are {names}; see docs/settings.md.",
    )
