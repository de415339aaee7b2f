"""SQLSTATE alone distinguishes errors of PostgreSQL."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors

from headrace.errors import HeadraceError
from headrace.source.faults import FAULTS, translated


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.LockNotAvailable(), "source-locked"),
        (errors.DeadlockDetected(), "source-locked"),
        (errors.SerializationFailure(), "source-locked"),
        (errors.InsufficientPrivilege(), "permission-denied"),
        (errors.AdminShutdown(), "connection-lost"),
        (errors.CrashShutdown(), "connection-lost"),
        (errors.ConnectionFailure(), "connection-lost"),
        (errors.TooManyConnections(), "server-unreachable"),
        (errors.DiskFull(), "server-unreachable"),
        (errors.ReadOnlySqlTransaction(), "standby-server"),
        (errors.DivisionByZero(), "invariant"),
        (psycopg.OperationalError("whatever it says"), "connection-lost"),
        (psycopg.InterfaceError("a bug"), "invariant"),
    ],
)
def test_codes(error: psycopg.Error, code: str) -> None:
    with pytest.raises(HeadraceError) as raised, translated():
        raise error
    assert raised.value.code == code
    assert raised.value.__cause__ is error


def test_every_fault_is_a_code_of_its_branch() -> None:
    assert all(code in branch.codes for branch, code in FAULTS.values())


def test_errors_of_our_own_pass() -> None:
    with pytest.raises(KeyError), translated():
        raise KeyError
