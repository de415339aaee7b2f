"""Spark's errors as HeadraceErrors.

| Spark's error                                    | HeadraceError                  |
|--------------------------------------------------|--------------------------------|
| SQLSTATE 22xxx, 21xxx: the data of the query     | UserError query-failed         |
| raised by a rendered expression                  | UserError query-failed         |
| a missing file or path of the store              | Unavailable store-unreachable  |
| SQLSTATE 42xxx: the query itself                 | InternalError invariant        |
| Spark Connect does not answer                    | Unavailable spark-unreachable  |
| a `WorkerFailure` of our code on executors       | the error of its code          |
| anything else                                    | Transient spark-failed         |
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

from headrace.errors import (
    BRANCHES,
    HeadraceError,
    InternalError,
    Transient,
    Unavailable,
    UserError,
)

_STORE_CONDITIONS = ("PATH_NOT_FOUND", "FAILED_READ_FILE")
_CANCELLED_CONDITIONS = ("SPARK_JOB_CANCELLED", "OPERATION_CANCELED")
_RAISED_CONDITION = "USER_RAISED_EXCEPTION"
_QUERY_STATES = ("22", "21")
_OURS_STATES = ("42", "0A")
# Java reports this error of the file system as text only.
_DISK_FULL = "No space left on device"
_MARK = re.compile(r"headrace-error<(?P<code>[a-z-]+)>(?P<message>[^\n<]*)<")
_LONGEST_CHAIN = 20

_translating: ContextVar[bool] = ContextVar("translating", default=False)


class WorkerFailure(Exception):
    """An error of our code on an executor, with a code that survives the way through the JVM."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        line = " ".join(message.replace("<", "(").split())
        super().__init__(f"headrace-error<{code}>{line}<")


@contextmanager
def translated() -> Iterator[None]:
    """Raise Spark's errors as HeadraceErrors; other exceptions pass."""
    _quiet_spark_loggers()
    token = _translating.set(True)
    try:
        yield
    except HeadraceError:
        raise
    except Exception as error:
        if not _is_sparks(error):
            raise
        raise translate(error) from error
    finally:
        _translating.reset(token)


def cancelled() -> Transient:
    """Return the error for a cancelled call."""
    return Transient("spark-failed", "the Spark job was cancelled")


def translate(error: Exception) -> HeadraceError:
    """Return the HeadraceError for an error of Spark."""
    from pyspark.errors import AnalysisException

    text = _text(error)
    if marked := _MARK.search(text):
        return _marked(marked["code"], marked["message"])
    condition, state, message = _facts(error)
    if condition.startswith(_CANCELLED_CONDITIONS):
        return cancelled()
    if condition.startswith(_STORE_CONDITIONS):
        return Unavailable(
            "store-unreachable", "could not read a file of the store", detail=message
        )
    if _DISK_FULL in text:
        return Unavailable("store-full", "no space left on a disk", detail=message)
    detail = f"Spark reports {condition}, SQLSTATE {state or 'unknown'}." if condition else None
    if state.startswith(_QUERY_STATES) or condition == _RAISED_CONDITION:
        return UserError(
            "query-failed", f"the query failed: {_first_sentence(message)}", detail=detail
        )
    if state.startswith(_OURS_STATES) or isinstance(error, AnalysisException):
        return InternalError("invariant", "Spark rejected a query of Headrace", detail=message)
    if _is_unavailable(error):
        return Unavailable("spark-unreachable", "Spark Connect does not answer", detail=message)
    return Transient("spark-failed", f"a Spark job failed: {message}", detail=detail)


def _is_sparks(error: Exception) -> bool:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    if isinstance(error, (PySparkException, Py4JError, ConnectionError, EOFError)):
        return True
    return type(error).__module__.partition(".")[0] == "grpc"


def _text(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001  the message comes from the JVM, which may have died
        return type(error).__name__


def _facts(error: Exception) -> tuple[str, str, str]:
    """Return condition, SQLSTATE and short message of the root cause."""
    from pyspark.errors import PySparkException

    if isinstance(error, PySparkException):
        condition = _ask(error, "getCondition")
        return (
            condition,
            _ask(error, "getSqlState"),
            _short(_ask(error, "getMessage") or _text(error)),
        )
    java = getattr(error, "java_exception", None)
    if java is None:
        return "", "", _short(f"{type(error).__name__}: {_text(error)}")
    condition, state, message = "", "", _short(_text(error))
    for _ in range(_LONGEST_CHAIN):
        condition = _ask(java, "getCondition") or condition
        state = _ask(java, "getSqlState") or state
        message = _short(_ask(java, "toString")) or message
        java = java.getCause()
        if java is None:
            break
    return condition, state, message


def _ask(thing: Any, method: str) -> str:
    """Return the result of a method that may not exist, or may need a dead JVM; else ''."""
    try:
        return str(getattr(thing, method)() or "")
    except Exception:  # noqa: BLE001
        return ""


def _short(message: str) -> str:
    """Return the message without stack trace and quoted SQL, on one line."""
    head = re.split(r"\n\s+at |\n\nJVM stacktrace|\n== ", message.strip(), maxsplit=1)[0]
    return " ".join(head.split())[:500]


def _first_sentence(message: str) -> str:
    """Return the first sentence, without Spark's advice on its own functions and settings.

    "[DIVIDE_BY_ZERO] Division by zero. Use `try_divide` to ..." -> "division by zero"
    """
    plain = re.sub(r"^\[[A-Z0-9_.]+\] | SQLSTATE: \w+$", "", message)
    sentence = re.split(r"\.(?:\s|$)", plain, maxsplit=1)[0]
    return sentence[:1].lower() + sentence[1:]


def _marked(code: str, message: str) -> HeadraceError:
    branch = next((branch for branch in BRANCHES if code in branch.codes), None)
    if branch is None:
        return InternalError("invariant", f"unknown error code {code!r}: {message}")
    return branch(code, message)


def _is_unavailable(error: Exception) -> bool:
    ask = getattr(error, "getGrpcStatusCode", None) or getattr(error, "code", None)
    return ask is not None and getattr(ask(), "name", "") == "UNAVAILABLE"


class _OnlyOthers(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return not _translating.get()


@cache
def _quiet_spark_loggers() -> None:
    """Keep PySpark from logging translated errors to the terminal as pages of JSON."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).addFilter(_OnlyOthers())
