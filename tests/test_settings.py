"""Where connection strings come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.errors import UserError
from headrace.settings import Settings, places, resolve


def test_a_reference_is_looked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_PLACE", "host=somewhere")
    (tmp_path / "dsn").write_text("host=elsewhere\n")
    assert resolve("host=here") == "host=here"
    assert resolve("env:SECRET_PLACE") == "host=somewhere"
    assert resolve(f"file:{tmp_path / 'dsn'}") == "host=elsewhere"
    for missing in ("env:NO_SUCH_NAME", f"file:{tmp_path / 'none'}"):
        with pytest.raises(UserError) as caught:
            resolve(missing)
        assert caught.value.code == "invalid-dsn"


def test_arguments_win_over_variables_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "headrace.toml").write_text('dsn = "host=file"\nspark = "local[1]"\n')
    assert places(home=tmp_path).spark == "local[1]"
    monkeypatch.setenv("HEADRACE_SPARK", "local[2]")
    assert places(home=tmp_path).spark == "local[2]"
    assert places(home=tmp_path, spark="local[3]").spark == "local[3]"
    (tmp_path / "headrace.toml").write_text("colour = 1\n")
    with pytest.raises(UserError) as caught:
        places(home=tmp_path)
    assert caught.value.code == "invalid-option"


def test_settings_are_checked() -> None:
    assert Settings.of({"max_buffer_mb": 5}).max_buffer_mb == 5
    assert Settings.of({"allow_circular": True}).allow_circular
    wrongs = ({"max_buffer_mb": 0}, {"nothing": 1}, {"max_fixpoint_iterations": 0})
    for wrong in (*wrongs, {"allow_circular": "perhaps"}):
        with pytest.raises(UserError):
            Settings.of(wrong)


def test_cycles_and_strata_are_careful_and_quick_by_default() -> None:
    settings = Settings()
    assert not settings.allow_circular
    assert settings.max_fixpoint_iterations == 100
    assert settings.enable_stratum_skip
    assert settings.stratified_cycle_validation
    assert settings.stratified_dred


def test_schedules_and_failures_by_default() -> None:
    settings = Settings()
    assert (settings.default_tier, settings.lazy_refresh_timeout) == ("hot", 5.0)
    assert (settings.time_zone, settings.max_failures, settings.workers) == ("UTC", 5, 4)


def test_capture_is_by_triggers_by_default_and_holds_back_little() -> None:
    settings = Settings()
    assert (settings.cdc_mode, settings.wal_transition_timeout) == ("trigger", 300.0)
    assert not settings.auto_replica_identity
    assert settings.slot_lag_warning_threshold_mb == 100
    assert settings.slot_lag_critical_threshold_mb == 1024


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"cdc_mode": "log"}, "cdc_mode"),
        ({"wal_transition_timeout": 0}, "wal_transition_timeout"),
        ({"slot_lag_warning_threshold_mb": 0}, "slot_lag_warning_threshold_mb"),
        ({"slot_lag_warning_threshold_mb": 1024}, "slot_lag_critical_threshold_mb"),
        ({"slot_lag_critical_threshold_mb": 100}, "slot_lag_critical_threshold_mb"),
    ],
)
def test_settings_of_capture_are_checked(given: dict[str, Any], named: str) -> None:
    with pytest.raises(UserError, match=f"setting {named}:") as caught:
        Settings.of(given)
    assert caught.value.code == "invalid-option"
    both = {"slot_lag_warning_threshold_mb": 2000, "slot_lag_critical_threshold_mb": 2001}
    assert Settings.of(both).slot_lag_warning_threshold_mb == 2000


@pytest.mark.parametrize(
    "wrong",
    [
        {"default_tier": "tepid"},
        {"lazy_refresh_timeout": 0},
        {"time_zone": "Europe/Nowhere"},
        {"max_failures": 0},
        {"workers": 0},
    ],
)
def test_settings_of_schedules_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=next(iter(wrong))) as caught:
        Settings.of(wrong)
    assert caught.value.code == "invalid-option"
    assert Settings.of({"time_zone": "Europe/Berlin"}).time_zone == "Europe/Berlin"
