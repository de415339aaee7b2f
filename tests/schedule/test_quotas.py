"""Workers are shared among databases; nothing is wasted that may be lent, and none starves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from math import ceil, floor
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.schedule import quotas
from headrace.schedule.quotas import BURST, Claim, Job, entitled
from headrace.schedule.tiers import Tier
from tests.schedule.simulation import START

SECOND = timedelta(seconds=1)


def job(name: str, database: int = 1, tier: Tier = Tier.HOT, waits: float = 0) -> Job:
    return Job(name, database, tier, START - waits * SECOND)


def jobs(database: int, count: int, tier: Tier = Tier.HOT, waits: float = 0) -> list[Job]:
    return [job(f"{database}.{number}", database, tier, waits) for number in range(count)]


def pick(
    waiting: Sequence[Job], running: Sequence[int], workers: int, shares: Mapping[int, int]
) -> tuple[Job, ...]:
    """The jobs to start where databases have shares alone."""
    claims = {database: Claim(share) for database, share in shares.items()}
    return quotas.pick(waiting, running, workers, claims)


def databases(found: Sequence[Job]) -> Counter[int]:
    return Counter(one.database for one in found)


def test_one_database_has_all_workers() -> None:
    assert len(pick(jobs(1, 9), [], 4, {1: 1})) == 4
    assert len(pick(jobs(1, 9), [1], 4, {1: 1})) == 3
    assert pick(jobs(1, 9), [1] * 4, 4, {1: 1}) == ()
    assert pick([], [], 4, {1: 1}) == ()


def test_hotter_jobs_first_then_those_that_wait_longer() -> None:
    waiting = [
        job("cold", tier=Tier.COLD, waits=100),
        job("warm", tier=Tier.WARM, waits=1),
        job("frozen", tier=Tier.FROZEN, waits=200),
        job("new", waits=1),
        job("old", waits=2),
    ]
    picked = [one.name for one in pick(waiting, [], 5, {1: 1})]
    assert picked == ["old", "new", "warm", "cold", "frozen"]


def test_equal_shares() -> None:
    picked = pick([*jobs(1, 9, waits=9), *jobs(2, 9)], [], 4, {1: 1, 2: 1})
    assert databases(picked) == {1: 2, 2: 2}


def test_shares_that_were_given() -> None:
    picked = pick([*jobs(1, 20), *jobs(2, 20)], [], 10, {1: 8, 2: 2})
    assert databases(picked) == {1: 8, 2: 2}


def test_whole_workers_of_a_share_come_before_parts_of_others() -> None:
    waiting = [*jobs(1, 9), *jobs(2, 9, waits=5), *jobs(3, 9, waits=4), *jobs(4, 9, waits=3)]
    picked = pick(waiting, [], 5, {1: 12, 2: 1, 3: 1, 4: 1})
    assert databases(picked) == {1: 4, 2: 1}


def test_a_database_that_is_not_named_weighs_one() -> None:
    picked = pick([*jobs(1, 9), *jobs(2, 9)], [], 4, {})
    assert databases(picked) == {1: 2, 2: 2}


def test_an_unused_share_is_lent_out_up_to_half_as_much_again() -> None:
    assert databases(pick(jobs(1, 9), [], 8, {1: 1, 2: 1})) == {1: 6}
    assert databases(pick([*jobs(1, 9), *jobs(2, 1)], [], 8, {1: 1, 2: 1})) == {1: 6, 2: 1}
    assert databases(pick([*jobs(1, 9), *jobs(2, 3)], [], 8, {1: 1, 2: 1})) == {1: 5, 2: 3}


def test_a_share_below_one_worker_is_one() -> None:
    assert databases(pick(jobs(3, 5), [], 2, {1: 1, 2: 1, 3: 1})) == {3: 1}


def test_what_was_lent_comes_back_as_jobs_end() -> None:
    waiting = [*jobs(1, 9, waits=100), *jobs(2, 9)]
    running = [1] * 6 + [2] * 2
    while Counter(running) != {1: 4, 2: 4}:
        running.remove(1)
        (started,) = pick(waiting, running, 8, {1: 1, 2: 1})
        assert started.database == 2
        running.append(started.database)
    running.remove(1)
    assert databases(pick(waiting, running, 8, {1: 1, 2: 1})) == {1: 1}


def test_a_hot_database_does_not_starve_a_cold_one() -> None:
    """Three databases with one worker: each comes when it has waited longest."""
    waiting = [*jobs(1, 3, waits=1), job("cold", 2, Tier.COLD, waits=5), *jobs(3, 3, waits=2)]
    (first,) = pick(waiting, [], 1, {1: 1, 2: 1, 3: 1})
    assert first.name == "cold"


QUOTAS = {1: Claim(quota=6), 2: Claim(quota=2)}


def test_quotas_are_numbers_of_workers() -> None:
    waiting = [*jobs(1, 20), *jobs(2, 20)]
    assert databases(quotas.pick(waiting, [], 8, QUOTAS)) == {1: 6, 2: 2}
    # With more workers than that, each may borrow half as much again.
    assert databases(quotas.pick(waiting, [], 20, QUOTAS)) == {1: 9, 2: 3}
    assert databases(quotas.pick(jobs(2, 20), [], 8, QUOTAS)) == {2: 3}


def test_shares_are_of_what_quotas_leave() -> None:
    claims = {1: Claim(quota=4), 2: Claim(share=3), 3: Claim()}
    assert entitled(claims, 8) == {1: 4, 2: 3, 3: 1}
    waiting = [*jobs(1, 20), *jobs(2, 20), *jobs(3, 20)]
    assert databases(quotas.pick(waiting, [], 8, claims)) == {1: 4, 2: 3, 3: 1}


def test_where_quotas_leave_nothing_others_have_a_worker() -> None:
    claims = {1: Claim(quota=8), 2: Claim()}
    assert entitled(claims, 4) == {1: 4, 2: 1}
    picked = quotas.pick([*jobs(1, 9, waits=9), *jobs(2, 9)], [], 4, claims)
    assert databases(picked) == {1: 3, 2: 1}


def test_a_higher_priority_comes_first_where_workers_do_not_suffice() -> None:
    claims = {1: Claim(quota=4), 2: Claim(quota=4, priority=1)}
    waiting = [*jobs(1, 9, waits=9), *jobs(2, 9)]
    assert databases(quotas.pick(waiting, [], 6, claims)) == {1: 2, 2: 4}
    assert databases(quotas.pick(waiting, [], 3, claims)) == {2: 3}
    lower = {1: Claim(quota=4), 2: Claim(quota=4, priority=-1)}
    assert databases(quotas.pick(waiting, [], 3, lower)) == {1: 3}


def test_priority_is_no_claim_to_what_others_are_entitled_to() -> None:
    claims = {1: Claim(quota=2), 2: Claim(quota=2, priority=9)}
    waiting = [*jobs(1, 9), *jobs(2, 9)]
    assert databases(quotas.pick(waiting, [], 4, claims)) == {1: 2, 2: 2}
    # What it had borrowed comes back as its jobs end.
    assert databases(quotas.pick(waiting, [2, 2, 2], 4, claims)) == {1: 1}
    assert databases(quotas.pick(waiting, [2, 2, 1], 4, claims)) == {1: 1}


waits = st.builds(
    job,
    name=st.uuids().map(str),
    database=st.integers(1, 4),
    tier=st.sampled_from(Tier),
    waits=st.integers(0, 100),
)
weights = st.dictionaries(st.integers(1, 4), st.integers(1, 9))


@settings(deadline=None)
@given(
    st.lists(waits, max_size=25),
    st.lists(st.integers(1, 4), max_size=8),
    st.integers(1, 12),
    weights,
)
def test_what_is_picked(
    waiting: list[Job], running: list[int], workers: int, shares: Mapping[int, int]
) -> None:
    picked = pick(waiting, running, workers, shares)
    assert len(set(picked)) == len(picked) and set(picked) <= set(waiting)
    assert len(picked) <= max(workers - len(running), 0)
    before, after = Counter(running), Counter(running) + databases(picked)
    known = {*shares, *before, *databases(waiting)}
    total = sum(shares.get(one, 1) for one in known)
    for one in databases(waiting):
        share = workers * shares.get(one, 1) / total
        wanted = before[one] + databases(waiting)[one]
        assert after[one] <= max(ceil(share * BURST), before[one])
        if not running:
            assert after[one] >= min(floor(share), wanted)
        left = [job for job in waiting if job.database == one and job not in picked]
        mine = [job for job in picked if job.database == one]
        assert all(job.order < other.order for job in mine for other in left)
        if len(picked) < workers - len(running) and left:
            assert after[one] >= ceil(share * BURST)


@settings(deadline=None)
@given(st.integers(1, 6), weights.filter(bool), st.integers(0, 2**32))
def test_no_database_with_waiting_jobs_starves(
    workers: int, shares: Mapping[int, int], seed: int
) -> None:
    """Every database but the last wants more than there is, always with hot jobs."""
    random = Random(seed)
    *greedy, modest = sorted(shares)
    waiting = [job("modest", modest, Tier.FROZEN)]
    running: list[Job] = []
    for round_number in range(200):
        now = START + round_number * SECOND
        for one in greedy:
            lined = sum(job.database == one for job in waiting)
            waiting += [
                Job(f"{one}.{round_number}.{n}", one, Tier.HOT, now) for n in range(9 - lined)
            ]
        started = pick(waiting, [one.database for one in running], workers, shares)
        waiting = [one for one in waiting if one not in started]
        running += started
        if not any(one.name == "modest" for one in waiting):
            return
        running.remove(random.choice(running))
    raise AssertionError("the modest database was never served")


@settings(deadline=None)
@given(st.integers(2, 8), st.integers(0, 2**32))
def test_over_time_each_gets_its_share(workers: int, seed: int) -> None:
    """Two databases, weighing 3 and 1, that always have jobs, which end in any order."""
    random = Random(seed)
    shares = {1: 3, 2: 1}
    running: list[int] = []
    used: Counter[int] = Counter()
    rounds = 60
    for _ in range(rounds):
        picked = pick([*jobs(1, 9), *jobs(2, 9)], running, workers, shares)
        running += [one.database for one in picked]
        used.update(running)
        running.remove(random.choice(running))
    for database, weight in shares.items():
        assert used[database] >= floor(workers * weight / 4) * rounds


claims_of = st.dictionaries(
    st.integers(1, 4),
    st.builds(Claim, st.integers(1, 9), st.none() | st.integers(1, 12), st.integers(-2, 2)),
)


@settings(deadline=None)
@given(
    st.lists(waits, max_size=25),
    st.lists(st.integers(1, 4), max_size=8),
    st.integers(1, 12),
    claims_of,
)
def test_what_is_picked_by_claims(
    waiting: list[Job], running: list[int], workers: int, claims: Mapping[int, Claim]
) -> None:
    """Nobody exceeds one and a half times his quota, nothing is wasted, borrowing comes last."""
    picked = quotas.pick(waiting, running, workers, claims)
    assert len(set(picked)) == len(picked) and set(picked) <= set(waiting)
    assert len(picked) <= max(workers - len(running), 0)
    before, after = Counter(running), Counter(running) + databases(picked)
    known = {one: claims.get(one, Claim()) for one in {*claims, *before, *databases(waiting)}}
    quota = entitled(known, workers)
    assert all(quota[one] > 0 for one in known)
    short = []
    for one in databases(waiting):
        assert after[one] <= max(ceil(quota[one] * BURST), before[one])
        left = [job for job in waiting if job.database == one and job not in picked]
        if left and after[one] + 1 <= quota[one]:
            short.append(one)
        if len(picked) < workers - len(running) and left:
            assert after[one] >= ceil(quota[one] * BURST)
    if short:
        borrowing = [one for one in databases(picked) if after[one] > quota[one]]
        assert all(before[one] + 1 > quota[one] or after[one] <= quota[one] for one in borrowing)
        assert not borrowing, "nobody borrows while another has less than it is entitled to"
        highest = max(known[one].priority for one in short)
        served = [one for one in databases(picked) if known[one].priority < highest]
        assert not served, "a higher priority comes first"
