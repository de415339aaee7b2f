"""What no code names is an internal error wherever it leaves the library."""

from __future__ import annotations

import pytest

from headrace.api import Headrace
from headrace.boundary.entry_points import entry_point, entry_points
from headrace.errors import InternalError, UserError, contained
from headrace.observe.reader import ProjectReader


@entry_points
class House:
    def fall(self, kind: type[Exception]) -> None:
        raise kind("c2")

    def _fall(self) -> None:
        raise KeyError("c2")


def test_an_unforeseen_exception_is_the_cause_of_an_internal_error() -> None:
    with pytest.raises(InternalError) as caught:
        House().fall(KeyError)
    error = caught.value
    assert (error.code, error.exit_code) == ("internal-error", 70)
    assert error.message.startswith("could not complete fall")
    assert error.detail == "KeyError: 'c2'"
    assert isinstance(error.__cause__, KeyError)


def test_a_type_error_is_the_caller_s_only_if_the_call_itself_is_wrong() -> None:
    with pytest.raises(TypeError):
        House().fall()  # type: ignore[call-arg]
    with pytest.raises(InternalError):
        House().fall(TypeError)


def test_errors_with_a_code_and_interrupts_pass() -> None:
    def refuse() -> None:
        raise UserError("invalid-name", "no")

    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(UserError):
        entry_point(refuse)()
    with pytest.raises(KeyboardInterrupt):
        entry_point(stop)()
    with pytest.raises(UserError), contained("compute public.t"):
        refuse()


def test_a_stage_is_named() -> None:
    with pytest.raises(InternalError) as caught, contained("compute public.t, stage r1"):
        {}["c2"]
    assert caught.value.message.startswith("could not compute public.t, stage r1: ")
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize("of", [Headrace, ProjectReader])
def test_every_public_method_is_a_door(of: type) -> None:
    public = [m for name, m in vars(of).items() if callable(m) and not name.startswith("_")]
    assert public
    assert all(hasattr(method, "__wrapped__") for method in public)
