"""One PostgreSQL and one Spark for the whole test run; a fresh database for each test."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from headrace.embedded import EmbeddedServer
from tests import forms
from tests.databases import extra_database
from tests.purity import PURE, refuse_servers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# How long an example takes says nothing about what it shows.
settings.register_profile("headrace", deadline=None, max_examples=forms.examples(100))
settings.load_profile("headrace")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Without a server, files all of whose tests need one are not even read."""
    pure = forms.FORM is not forms.Form.FAST or forms.may_be_pure(collection_path)
    return None if pure else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose the tests of this run's form, and order them."""
    if wrong := forms.mismarked(items):
        raise pytest.UsageError("mark what uses a server or Spark: " + ", ".join(wrong))
    chosen, others = forms.split(items, forms.FORM)
    if others:
        config.hook.pytest_deselected(items=others)
    forms.longest_first(chosen)
    items[:] = chosen


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Know whether the test that is running is a pure one."""
    if forms.is_pure(item):
        PURE.append(item.nodeid)
    try:
        return (yield)
    finally:
        PURE.clear()


sys.addaudithook(refuse_servers)


@pytest.fixture(scope="session")
def server() -> Iterator[EmbeddedServer]:
    """The embedded server of this test run, in a home folder that is removed afterwards."""
    home = Path(tempfile.mkdtemp(prefix="headrace-test-"))
    try:
        with EmbeddedServer.open(home) as opened:
            yield opened
    finally:
        shutil.rmtree(home)


@pytest.fixture
def dsn(server: EmbeddedServer) -> Iterator[str]:
    """The connection string of an empty database that exists for one test."""
    with extra_database(server) as found:
        yield found


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession | str]:
    """The local Spark session of this test run, or the Spark that HEADRACE_TEST_SPARK names."""
    from headrace.spark.session import local_session

    elsewhere = os.environ.get("HEADRACE_TEST_SPARK")
    if elsewhere is not None and elsewhere.startswith("sc://"):
        yield elsewhere
        return
    session = local_session() if elsewhere is None else local_session(elsewhere)
    yield session
    session.stop()
