"""Commands left for the holder of the lease: every way from queued to an end, and none back."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from headrace.catalog import Catalog, PostgresCatalog, advisory
from headrace.catalog.error_codec import decode_error, encode_error
from headrace.catalog.records import Request
from headrace.catalog.requests import CHANNEL
from headrace.errors import BRANCHES, InternalError, Transient, Unavailable
from headrace.source.connection import Database

COMMAND = {"verb": "refresh", "schema": "shop", "name": "totals"}
FAILURE = encode_error(Transient("spark-failed", "a job failed", detail="It was stopped."))


def now(catalog: Catalog, request: int) -> Request:
    found = catalog.request_state(request)
    assert found is not None
    return found


def begun(catalog: Catalog, fence: int) -> int:
    """A request that is running."""
    made = catalog.request(COMMAND, "anna")
    taken = catalog.next_request(fence)
    assert taken is not None
    assert taken.id == made
    return made


def test_requests_are_taken_in_the_order_in_which_they_came(catalog: Catalog) -> None:
    made = [catalog.request({"number": number}, "anna") for number in range(3)]
    with catalog.lease("daemon", serves=True) as lease:
        taken = [catalog.next_request(lease.fence) for _ in range(3)]
        assert catalog.next_request(lease.fence) is None
    assert [one.id for one in taken if one] == made
    assert [one.command["number"] for one in taken if one] == [0, 1, 2]
    assert {(one.state, one.fence) for one in taken if one} == {("running", lease.fence)}
    assert all(one and one.started_at and not one.finished_at for one in taken)


def test_who_lost_the_lease_takes_none(catalog: Catalog) -> None:
    with catalog.lease("first", serves=True) as first:
        pass
    request = catalog.request(COMMAND, "anna")
    with catalog.lease("second", serves=True):
        with pytest.raises(Unavailable) as raised:
            catalog.next_request(first.fence)
        assert raised.value.code == "lease-lost"
    assert now(catalog, request).state == "queued"


def test_a_request_reports_its_progress_and_ends_with_its_result(catalog: Catalog) -> None:
    with catalog.lease("daemon", serves=True) as lease:
        request = begun(catalog, lease.fence)
        assert now(catalog, request).progress is None
        catalog.report(request, {"what": "copying", "done": 1, "total": 3})
        assert now(catalog, request).progress == {"what": "copying", "done": 1, "total": 3}
        catalog.finish(request, result={"z": 1, "a": [None, 2.5]})
    ended = now(catalog, request)
    assert (ended.state, ended.error) == ("done", None)
    assert list(ended.result.items()) == [("z", 1), ("a", [None, 2.5])]
    assert ended.finished_at is not None


def test_a_request_without_a_result_is_done(catalog: Catalog) -> None:
    with catalog.lease("daemon", serves=True) as lease:
        request = begun(catalog, lease.fence)
        catalog.finish(request)
    assert (now(catalog, request).state, now(catalog, request).result) == ("done", None)


def test_a_failure_keeps_its_error(catalog: Catalog) -> None:
    with catalog.lease("daemon", serves=True) as lease:
        request = begun(catalog, lease.fence)
        catalog.finish(request, error=FAILURE)
    assert (now(catalog, request).state, now(catalog, request).error) == ("failed", FAILURE)


def test_what_waits_is_withdrawn_and_what_runs_is_not(catalog: Catalog) -> None:
    with catalog.lease("daemon", serves=True) as lease:
        running = begun(catalog, lease.fence)
        waiting = catalog.request(COMMAND, "anna")
        assert catalog.withdraw_request(waiting)
        assert not catalog.withdraw_request(waiting)
        assert not catalog.withdraw_request(running)
        assert not catalog.withdraw_request(waiting + 1)
        assert catalog.next_request(lease.fence) is None
    assert now(catalog, waiting).state == "cancelled"
    assert now(catalog, waiting).finished_at is not None
    assert (now(catalog, running).state, now(catalog, running).cancel) == ("running", False)


def test_cancelling_withdraws_what_waits_and_asks_what_runs_to_stop(catalog: Catalog) -> None:
    with catalog.lease("daemon", serves=True) as lease:
        running = begun(catalog, lease.fence)
        waiting = catalog.request(COMMAND, "anna")
        assert catalog.cancelled() == frozenset()
        for request in (running, waiting):
            catalog.cancel_request(request)
        assert now(catalog, waiting).state == "cancelled"
        assert now(catalog, waiting).finished_at is not None
        assert (now(catalog, running).state, now(catalog, running).cancel) == ("running", True)
        assert now(catalog, running).finished_at is None
        assert catalog.cancelled() == {running}
        catalog.finish(running, error=FAILURE)
    assert catalog.cancelled() == frozenset()
    assert (now(catalog, running).state, now(catalog, running).error) == ("cancelled", FAILURE)


def test_what_was_done_in_spite_of_a_cancel_is_done(catalog: Catalog) -> None:
    with catalog.lease("daemon", serves=True) as lease:
        request = begun(catalog, lease.fence)
        catalog.cancel_request(request)
        catalog.finish(request, result=7)
    assert (now(catalog, request).state, now(catalog, request).result) == ("done", 7)


def end_done(catalog: Catalog, request: int) -> None:
    catalog.finish(request, result=1)


def end_failed(catalog: Catalog, request: int) -> None:
    catalog.finish(request, error=FAILURE)


def end_lost(catalog: Catalog, request: int) -> None:
    fence = now(catalog, request).fence
    assert fence is not None
    catalog.lose_requests(fence + 1)


@pytest.mark.parametrize("end", [end_done, end_failed, end_lost])
def test_an_end_is_never_left_again(catalog: Catalog, end: Callable[[Catalog, int], None]) -> None:
    with catalog.lease("daemon", serves=True) as lease:
        request = begun(catalog, lease.fence)
        end(catalog, request)
        ended = now(catalog, request)
        catalog.report(request, {"what": "late"})
        catalog.finish(request, result="late")
        catalog.finish(request, error=FAILURE)
        catalog.cancel_request(request)
        catalog.lose_requests(lease.fence + 1)
        assert catalog.next_request(lease.fence) is None
    assert now(catalog, request) == ended
    assert ended.finished_at is not None


def test_what_an_earlier_holder_left_is_lost_and_the_rest_is_not(catalog: Catalog) -> None:
    with catalog.lease("first", serves=True) as first:
        left = begun(catalog, first.fence)
    waiting = catalog.request(COMMAND, "anna")
    with catalog.lease("second", serves=True) as second:
        catalog.lose_requests(second.fence)
        lost = now(catalog, left)
        assert lost.state == "failed"
        assert lost.error is not None
        error = decode_error(lost.error)
        assert (type(error), error.code) == (Transient, "request-lost")
        taken = catalog.next_request(second.fence)
        assert taken is not None
        assert taken.id == waiting
        catalog.lose_requests(second.fence)
        assert now(catalog, waiting).state == "running"


def test_who_serves_is_known_as_long_as_it_does(catalog: Catalog) -> None:
    assert catalog.serving() is None
    with catalog.lease("in place"):
        assert catalog.serving() is None
    with catalog.lease("daemon", serves=True) as lease:
        assert catalog.serving() == lease
        assert lease.serves
    assert catalog.serving() is None
    with catalog.lease("in place again") as lease:
        assert not lease.serves
        assert catalog.serving() is None


def test_who_serves_is_not_waited_for(catalog: Catalog) -> None:
    """A wait of an hour would hang the test."""

    def intrude() -> None:
        with catalog.lease("intruder", wait=3600):
            raise AssertionError("two holders")

    with (
        catalog.lease("daemon", serves=True),
        ThreadPoolExecutor(1) as threads,
        pytest.raises(Unavailable) as raised,
    ):
        threads.submit(intrude).result()
    assert (raised.value.code, raised.value.hint) == ("lease-held", "Stop it first.")


@pytest.mark.parametrize(
    ("branch", "code"), [(branch, code) for branch in BRANCHES for code in branch.codes]
)
def test_every_error_is_the_same_after_a_journey(branch: type, code: str) -> None:
    error = branch(code, "message", detail="Detail.", hint=None)
    error.add_note("and then this")
    other = decode_error(encode_error(error))
    assert type(other) is branch
    assert (other.code, str(other), other.__notes__) == (code, str(error), error.__notes__)


@pytest.mark.parametrize("strange", [{"branch": "Weather"}, {"code": "too-hot"}])
def test_an_unknown_error_is_still_reported(strange: dict[str, str]) -> None:
    error = decode_error({**FAILURE, **strange})
    assert isinstance(error, InternalError)
    assert error.message.startswith("a job failed [")
    assert error.detail == "It was stopped."


@pytest.mark.postgres
class TestOnPostgres:
    def test_another_catalog_sees_who_serves_until_its_session_ends(
        self, postgres: PostgresCatalog, dsn: str
    ) -> None:
        daemon = PostgresCatalog(Database(dsn).connect)
        with daemon.lease("daemon", serves=True) as lease:
            assert postgres.serving() == lease
            with pytest.raises(Unavailable) as raised, postgres.lease("intruder", wait=3600):
                pass
            assert raised.value.code == "lease-held"
            daemon.close()
            with psycopg.connect(dsn, autocommit=True) as other:
                while other.execute("SELECT FROM pg_locks WHERE locktype = 'advisory'").fetchone():
                    pass
            assert postgres.serving() is None

    def test_a_lock_of_somebody_else_does_not_make_a_dead_daemon_serve(
        self, postgres: PostgresCatalog, dsn: str
    ) -> None:
        """Between taking the lock and the number, the record is still that of the one before."""
        daemon = PostgresCatalog(Database(dsn).connect)
        with daemon.lease("daemon", serves=True):
            pass
        daemon.close()
        with psycopg.connect(dsn, autocommit=True) as other:
            other.execute("SELECT pg_advisory_lock(%s, %s)", advisory.WRITER)
            assert postgres.serving() is None

    def test_a_new_request_notifies_the_channel(self, postgres: PostgresCatalog, dsn: str) -> None:
        with psycopg.connect(dsn, autocommit=True) as listener:
            listener.execute(f"LISTEN {CHANNEL}")
            request = postgres.request(COMMAND, "anna")
            (notification,) = listener.notifies(timeout=30, stop_after=1)
        assert (notification.channel, notification.payload) == (CHANNEL, str(request))

    def test_a_request_is_taken_once_or_withdrawn_never_both(
        self, postgres: PostgresCatalog, dsn: str
    ) -> None:
        client = PostgresCatalog(Database(dsn).connect)
        with postgres.lease("daemon", serves=True) as lease, ThreadPoolExecutor(2) as threads:
            for _ in range(30):
                request = client.request(COMMAND, "anna")
                withdrawing = threads.submit(client.withdraw_request, request)
                taken = threads.submit(postgres.next_request, lease.fence).result()
                assert withdrawing.result() is (taken is None)
                assert now(client, request).state == ("cancelled" if taken is None else "running")
        client.close()

    def test_old_ends_are_forgotten(self, postgres: PostgresCatalog, dsn: str) -> None:
        old, waiting = (postgres.request(COMMAND, "anna") for _ in range(2))
        postgres.withdraw_request(old)
        with psycopg.connect(dsn, autocommit=True) as other:
            other.execute(
                "UPDATE headrace.requests SET requested_at = requested_at - interval '8 days',"
                " finished_at = finished_at - interval '8 days'"
            )
        postgres.request(COMMAND, "anna")
        assert postgres.request_state(old) is None
        assert now(postgres, waiting).state == "queued"


def test_what_was_taken_and_not_begun_waits_again(catalog: Catalog) -> None:
    first = catalog.request({"verb": "suspend"}, "someone")
    catalog.request({"verb": "resume"}, "someone")
    with catalog.lease("daemon", serves=True) as lease:
        taken = catalog.next_request(lease.fence)
        assert taken is not None
        catalog.give_back(taken.id)
        found = catalog.request_state(first)
        assert found is not None
        assert (found.state, found.started_at, found.fence) == ("queued", None, None)
        again = catalog.next_request(lease.fence)
        assert again is not None
        assert again.id == first, "it is the oldest still"
        catalog.finish(first, result=None)
        catalog.give_back(first)
        ended = catalog.request_state(first)
        assert ended is not None
        assert ended.state == "done"
