"""Orders over names that read each other."""

from __future__ import annotations

import pytest

from headrace.graph import Cycle, in_order


def test_each_comes_after_those_it_reads() -> None:
    reads = {"c": ["a", "b"], "b": ["a"], "a": [], "d": ["outside"]}
    assert in_order(reads) == ("a", "b", "c", "outside", "d")


def test_a_circle_is_told() -> None:
    with pytest.raises(Cycle) as caught:
        in_order({"a": ["c"], "b": ["a"], "c": ["b"], "d": []})
    assert sorted(caught.value.names) == ["a", "b", "c"]
    with pytest.raises(Cycle) as caught:
        in_order({"a": ["a"]})
    assert caught.value.names == ("a",)
