"""Incremental or full, from what refreshes took before."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.catalog.records import Effort, RefreshMode
from headrace.refresh.cost_history import outlook
from headrace.refresh.strategy import (
    CHEAPER,
    FEW_ROWS,
    FULL_AGAIN,
    INCREMENTAL,
    INCREMENTAL_AGAIN,
    LATEST,
    MANY_ROWS,
    MARGIN,
    PATIENCE,
    PATIENCE_WITH_GUESSES,
    REMEMBERED,
    RefreshCosts,
    choose,
    full_seconds,
    incremental_points,
    incremental_seconds,
)

STORED = 1_000_000
NOTHING = RefreshCosts()


def effort(rows: int, seconds: float = 0.0, stored: int = STORED, **given: bool) -> Effort:
    return Effort({"s": rows}, stored, seconds, **given)


def past(*lines: tuple[str, Effort]) -> RefreshCosts:
    """What happened in this order."""
    known = NOTHING
    for mode, one in lines:
        known = known.then(mode, one)
    return known


def full(seconds: float, rows: int = 10, stored: int = STORED, **given: bool) -> tuple[str, Effort]:
    return "FULL", effort(rows, seconds, stored, **given)


def followed(rows: int, seconds: float, **given: bool) -> tuple[str, Effort]:
    return "DIFFERENTIAL", effort(rows, seconds, **given)


MADE = full(2.0, rows=0, first=True)


class TestWhileNothingIsKnown:
    def test_a_small_change_is_followed(self) -> None:
        choice = choose(effort(1000), NOTHING)
        assert (choice.mode, choice.reason, choice.numbers) == ("DIFFERENTIAL", INCREMENTAL, "")
        assert (choice.incremental, choice.full) == (None, None)

    def test_a_change_of_most_rows_is_not(self) -> None:
        choice = choose(effort(600_000), NOTHING)
        assert (choice.mode, choice.reason) == ("FULL", MANY_ROWS)
        assert choice.numbers == "for 600,000 changed rows, with 1,000,000 stored"

    def test_the_more_inputs_change_the_fewer_rows_it_takes(self) -> None:
        """The change of each meets all others."""
        three = Effort({"a": 100_000, "b": 100_000, "c": 100_000}, STORED)
        assert choose(effort(300_000), NOTHING).mode == "DIFFERENTIAL"
        assert choose(three, NOTHING).mode == "FULL"

    def test_after_the_first_refresh_it_is_the_same_in_seconds(self) -> None:
        known = past(MADE)
        small, large = choose(effort(1000), known), choose(effort(600_000), known)
        assert (small.mode, large.mode, large.reason) == ("DIFFERENTIAL", "FULL", CHEAPER)
        assert (large.incremental, large.full) == (pytest.approx(2.4), 2.0)

    def test_small_inputs_are_followed_whatever_it_took(self) -> None:
        known = past(full(0.01, stored=FEW_ROWS), followed(10, 30.0))
        choice = choose(effort(FEW_ROWS, stored=FEW_ROWS), known)
        assert (choice.mode, choice.numbers) == ("DIFFERENTIAL", "")
        assert choose(effort(10, stored=FEW_ROWS + 1), known).mode == "FULL"


class TestWhatIsExpected:
    def test_full_grows_with_the_stored_rows(self) -> None:
        known = past(full(2.3))
        assert full_seconds(STORED, known) == pytest.approx(2.3)
        assert full_seconds(3 * STORED, known) == pytest.approx(6.3)
        assert full_seconds(STORED // 2, known) == pytest.approx(1.3)

    def test_a_recompute_over_far_fewer_rows_predicts_nothing(self) -> None:
        assert full_seconds(STORED, past(full(0.5, stored=100))) is None
        assert full_seconds(STORED, past(full(0.5, stored=100), full(3.0))) == 3.0

    def test_the_first_refresh_counts_until_there_is_another(self) -> None:
        assert full_seconds(STORED, past(MADE)) == 2.0
        assert full_seconds(STORED, past(MADE, full(1.0))) == 1.0

    def test_incremental_is_a_line_through_what_was_seen(self) -> None:
        known = past(followed(1000, 0.4), followed(101_000, 2.4))
        expected = [incremental_seconds(effort(n), known, 10.0) for n in (1000, 51_000, 101_000)]
        assert expected == pytest.approx([0.4, 1.4, 2.4])

    def test_fewer_rows_than_were_seen_are_expected_to_take_less(self) -> None:
        """Else small changes would be recomputed, because a large one took long."""
        known = past(full(2.0), followed(800_000, 20.0))
        assert choose(effort(800_000), known).mode == "FULL"
        choice = choose(effort(1000), known)
        assert choice.mode == "DIFFERENTIAL"
        assert choice.incremental == pytest.approx(0.324625)

    def test_one_that_took_long_by_chance_does_not_count(self) -> None:
        usual = [followed(1000, 0.4)] * LATEST
        known = past(*usual, followed(1000, 60.0), *usual[:2])
        assert incremental_seconds(effort(1000), known, 10.0) == 0.4

    def test_later_ones_of_a_size_replace_earlier_ones(self) -> None:
        known = past(*[followed(1000, 9.0)] * LATEST, *[followed(1000, 0.4)] * LATEST)
        assert incremental_seconds(effort(1000), known, 10.0) == 0.4

    def test_sizes_that_fall_back_are_levelled(self) -> None:
        known = past(followed(1000, 3.0), followed(5000, 1.0), followed(50_000, 4.0))
        points = incremental_points(frozenset("s"), known)
        assert points == ((1000, 2.0), (5000, 2.0), (50_000, 4.0))

    def test_changes_of_the_same_inputs_count_before_others(self) -> None:
        other = ("DIFFERENTIAL", Effort({"s": 500, "t": 500}, STORED, 5.0))
        known = past(followed(1000, 0.4), other)
        assert incremental_points(frozenset("s"), known) == ((1000, 0.4),)
        assert incremental_points(frozenset("st"), known) == ((1000, 5.0),)
        assert incremental_points(frozenset("u"), known) == ((1000, 0.4),)

    def test_what_was_seen_before_spark_was_warm_counts_half_until_more_is_known(self) -> None:
        cold = [full(4.0, warm=False), followed(1000, 3.0, warm=False)]
        choice = choose(effort(1000), past(*cold))
        assert (choice.full, choice.incremental) == (2.0, 1.5)
        warm = choose(effort(1000), past(*cold, full(1.9), followed(1000, 0.5)))
        assert (warm.full, warm.incremental) == (1.9, 0.5)

    def test_what_was_before_the_table_was_made_does_not_count(self) -> None:
        known = past(full(9.0), followed(1000, 9.0), MADE, followed(1000, 0.4))
        assert [one.seconds for _, one in known.lines] == [0.4, 2.0]

    def test_the_recompute_is_remembered_however_many_changes_follow(self) -> None:
        known = past(MADE, *[followed(10, 0.1)] * 10 * REMEMBERED)
        assert len(known.lines) == REMEMBERED + 1
        assert full_seconds(STORED, known) == 2.0


class TestChoosing:
    def test_the_numbers_are_reported(self) -> None:
        known = past(full(1.2), followed(900_000, 9.8))
        choice = choose(effort(900_000), known)
        assert (choice.mode, choice.reason) == ("FULL", CHEAPER)
        assert choice.numbers == (
            "about 1.20 s against 9.80 s incrementally, for 900,000 changed rows,"
            " with 1,000,000 stored"
        )
        other = choose(effort(900_000), past(full(12.0), followed(900_000, 9.8)))
        assert (other.mode, other.reason) == ("DIFFERENTIAL", INCREMENTAL)
        assert other.numbers.startswith("about 9.80 s against 12.00 s in full, for 900,000 ")

    def test_full_has_to_be_clearly_cheaper(self) -> None:
        assert choose(effort(1000), past(full(1.0), followed(1000, 1.04))).mode == "DIFFERENTIAL"
        assert choose(effort(1000), past(full(1.0), followed(1000, 1.2))).mode == "FULL"

    def test_a_bad_guess_is_made_once(self) -> None:
        """A quarter of the rows is thought to be cheap to follow, and is not."""
        known = past(MADE)
        ahead = effort(250_000)
        assert choose(ahead, known).mode == "DIFFERENTIAL"
        known = known.then(*followed(250_000, 9.0))
        assert choose(ahead, known).mode == "FULL"
        known = known.then(*full(2.0, rows=250_000))
        assert choose(ahead, known).mode == "FULL"
        assert choose(effort(1000), known).mode == "DIFFERENTIAL"

    def test_following_is_tried_again_the_sooner_the_closer_it_was(self) -> None:
        def tried_after(seconds: float) -> int:
            known = past(full(1.0), followed(1000, seconds))
            for number in range(200):
                if choose(effort(1000), known).mode == "DIFFERENTIAL":
                    return number
                known = known.then(*full(1.0, rows=1000))
            return 200

        assert PATIENCE < tried_after(1.5) < 2 * PATIENCE < tried_after(2.5) < REMEMBERED
        assert tried_after(20.0) == 200

    def test_what_is_only_guessed_is_found_out_soon(self) -> None:
        known = past(MADE)
        for _ in range(2 * PATIENCE_WITH_GUESSES):
            mode = choose(effort(900_000), known).mode
            known = known.then(mode, effort(900_000, 2.0 if mode == "FULL" else 0.5))
        assert known.taken("FULL")[PATIENCE_WITH_GUESSES - 1].rows == 900_000
        assert known.lines[0][0] == "DIFFERENTIAL"

    def test_what_is_cheap_now_is_found_out_and_kept(self) -> None:
        known = past(full(1.0), followed(1000, 1.5))
        while (choice := choose(effort(1000), known)).mode == "FULL":
            known = known.then(*full(1.0, rows=1000))
        assert (choice.reason, choice.incremental) == (INCREMENTAL_AGAIN, 1.5)
        for _ in range(3):
            known = known.then(*followed(1000, 0.2))
        assert choose(effort(1000), known).incremental == 0.2

    def test_small_changes_in_between_do_not_hide_how_long_ago_a_large_one_was(self) -> None:
        known = past(full(1.0), followed(500_000, 2.19))
        for _ in range(2 * PATIENCE):
            assert choose(effort(500_000), known).mode == "FULL"
            known = known.then(*full(1.0, rows=500_000)).then(*followed(10, 0.2))
        assert known.hope("DIFFERENTIAL", 500_000) == 0.5
        assert choose(effort(500_000), known).mode == "DIFFERENTIAL"

    def test_a_recompute_is_tried_again_if_it_was_not_much_dearer(self) -> None:
        known = past(full(3.0))
        for _ in range(2 * PATIENCE):
            assert choose(effort(1000), known).mode == "DIFFERENTIAL"
            known = known.then(*followed(1000, 1.66))
        choice = choose(effort(1000), known)
        assert (choice.mode, choice.reason) == ("FULL", FULL_AGAIN)

    def test_a_much_dearer_recompute_is_never_tried(self) -> None:
        known = past(full(3.0), *[followed(1000, 1.0)] * 10 * REMEMBERED)
        assert choose(effort(1000), known).mode == "DIFFERENTIAL"


class TestOutlook:
    def test_break_even(self) -> None:
        known = past(full(1.0), followed(1000, 0.5), followed(101_000, 1.5))
        found = outlook(RefreshMode.AUTO, frozenset("s"), STORED, known)
        assert found.most_rows == 61_000
        assert list(found.lines()) == [
            "full takes about 1.00 s, over 1,000,000 stored rows",
            "incremental took about 0.50 s for 1,000 changed rows",
            "incremental took about 1.50 s for 101,000 changed rows",
            "full beyond about 61,000 changed rows",
        ]
        assert choose(effort(61_000), known).mode == "DIFFERENTIAL"
        assert choose(effort(62_000), known).mode == "FULL"

    def test_before_anything_is_known(self) -> None:
        found = outlook(RefreshMode.AUTO, frozenset("s"), STORED, NOTHING)
        assert list(found.lines()) == [
            "no recompute over about as many rows is known",
            "no incremental refresh is known",
            "full beyond about 550,000 changed rows",
        ]
        assert choose(effort(550_000), NOTHING).mode == "DIFFERENTIAL"
        assert choose(effort(550_001), NOTHING).mode == "FULL"

    def test_a_recompute_that_never_pays(self) -> None:
        known = past(full(50.0), followed(2 * STORED, 10.0))
        found = outlook(RefreshMode.AUTO, frozenset("s"), STORED, known)
        assert list(found.lines())[-1] == "incremental, however many rows change"

    @pytest.mark.parametrize("mode", [RefreshMode.DIFFERENTIAL, RefreshMode.FULL])
    def test_where_there_is_no_choice(self, mode: RefreshMode) -> None:
        (line,) = outlook(mode, frozenset("s"), STORED, past(MADE)).lines()
        way = "incremental" if mode is RefreshMode.DIFFERENTIAL else "full"
        assert line == f"always {way}: refresh_mode is {mode}"

    def test_of_empty_inputs_nothing_is_expected_to_grow(self) -> None:
        known = past(full(0.5, stored=0))
        found = outlook(RefreshMode.AUTO, frozenset("s"), 0, known)
        assert found.full == pytest.approx(0.5)
        assert found.most_rows is None

    def test_small_inputs(self) -> None:
        (line,) = outlook(RefreshMode.AUTO, frozenset("s"), 10, past(MADE)).lines()
        assert line == "incremental: its inputs have no more than 10,000 stored rows"


seconds = st.floats(0.001, 1000)
sizes = st.integers(0, 2 * STORED)
inputs = st.dictionaries(st.sampled_from("stu"), sizes, min_size=1)
efforts = st.builds(
    Effort, inputs, st.integers(0, 8 * STORED), seconds, warm=st.booleans(), first=st.booleans()
)
pasts = st.lists(st.tuples(st.sampled_from(["FULL", "DIFFERENTIAL"]), efforts), max_size=12).map(
    lambda lines: past(*lines)
)


@given(pasts, inputs, seconds, sizes)
def test_more_rows_are_never_expected_to_take_less(
    known: RefreshCosts, changed: dict[str, int], recompute: float, more: int
) -> None:
    fewer = Effort(changed, STORED)
    name = min(changed)
    larger = replace(fewer, changed={**changed, name: changed[name] + more})
    least = incremental_seconds(fewer, known, recompute)
    assert 0 <= least <= incremental_seconds(larger, known, recompute) * (1 + 1e-9)


@given(pasts, st.integers(1, 8 * STORED))
def test_a_recompute_is_expected_within_what_was_seen(known: RefreshCosts, stored: int) -> None:
    expected = full_seconds(stored, known)
    if expected is not None:
        scaled = [one.seconds * stored / one.stored for one in known.taken("FULL") if one.stored]
        plain = [one.seconds for one in known.taken("FULL")]
        assert min([*scaled, *plain]) / 2 <= expected * (1 + 1e-9)
        assert expected <= max([*scaled, *plain]) * (1 + 1e-9)


@given(pasts, inputs, st.integers(0, 8 * STORED))
def test_a_choice_follows_from_its_numbers(
    known: RefreshCosts, changed: dict[str, int], stored: int
) -> None:
    choice = choose(Effort(changed, stored), known)
    if choice.incremental is None or choice.full is None:
        assert choice.mode == "DIFFERENTIAL" or choice.reason == MANY_ROWS
    elif choice.mode == "FULL":
        assert choice.incremental > MARGIN * choice.full / 2
        assert (choice.reason == CHEAPER) == (choice.incremental > MARGIN * choice.full)
    else:
        hope = known.hope("DIFFERENTIAL", sum(changed.values()))
        assert choice.incremental * hope <= MARGIN * choice.full * (1 + 1e-9)


@given(pasts, st.integers(FEW_ROWS + 1, 8 * STORED))
def test_the_outlook_is_what_is_chosen(known: RefreshCosts, stored: int) -> None:
    """Unless a way is tried again."""
    found = outlook(RefreshMode.AUTO, frozenset("s"), stored, known)
    if found.full is None:
        return
    most = 2 * stored if found.most_rows is None else found.most_rows
    at, beyond = (
        incremental_seconds(effort(n, stored=stored), known, found.full) for n in (most, most + 1)
    )
    assert most == 0 or at <= MARGIN * found.full
    assert found.most_rows is None or beyond > MARGIN * found.full


@given(
    st.floats(0.1, 30),
    st.floats(0.05, 30),
    st.floats(0, 10),
    st.lists(sizes, min_size=1, max_size=3),
    st.floats(0.5, 1.8),
)
def test_all_refreshes_together_take_little_more_than_the_better_way(
    recompute: float, start: float, slope: float, changes: list[int], first: float
) -> None:
    """In a world where following n rows takes a + b n, and the first recompute was seen wrongly."""
    known = past(full(recompute * first, rows=0, first=True))
    spent, best, worst = 0.0, 0.0, 0.0
    for number in range(200):
        rows = changes[number % len(changes)]
        takes = {"FULL": recompute, "DIFFERENTIAL": start + slope * recompute * rows / STORED}
        mode = choose(effort(rows), known).mode
        known = known.then(mode, effort(rows, takes[mode]))
        spent, best = spent + takes[mode], best + min(takes.values())
        worst = max(worst, takes[mode] - min(takes.values()))
    # A guess that is too high is made so many times before it is looked into.
    most = 4 * PATIENCE_WITH_GUESSES
    assert spent <= 1.2 * best + most * len(changes) * worst
