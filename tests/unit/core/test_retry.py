import pytest

from core.retry import QUICK_DELAYS_S, with_retries


class Passing(Exception):
    pass


class Flaky:
    """Raises the given errors in turn, then returns 42."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.num_calls = 0

    def __call__(self) -> int:
        self.num_calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return 42


def is_passing(error: Exception) -> bool:
    return isinstance(error, Passing)


def test_a_success_is_not_repeated() -> None:
    call, waits = Flaky(), list[float]()
    assert with_retries(call, should_retry=is_passing, sleep=waits.append) == 42
    assert (call.num_calls, waits) == (1, [])


def test_two_quick_retries() -> None:
    call, waits = Flaky(Passing(), Passing()), list[float]()
    found = with_retries(call, should_retry=is_passing, sleep=waits.append, random_unit=lambda: 0.5)
    assert found == 42
    assert waits == list(QUICK_DELAYS_S)


def test_the_last_error_is_raised() -> None:
    last = Passing("last")
    call = Flaky(Passing("1"), Passing("2"), last, Passing("never"))
    with pytest.raises(Passing) as caught:
        with_retries(call, should_retry=is_passing, sleep=lambda _: None)
    assert caught.value is last
    assert call.num_calls == 3


def test_other_errors_are_raised_at_once() -> None:
    call = Flaky(ValueError())
    with pytest.raises(ValueError):  # noqa: PT011 - it has no text
        with_retries(call, should_retry=is_passing, sleep=lambda _: None)
    assert call.num_calls == 1


@pytest.mark.parametrize(("unit", "expected"), [(0.0, 0.75), (1.0, 1.25)])
def test_waits_vary_by_a_quarter(unit: float, expected: float) -> None:
    waits: list[float] = []
    with_retries(
        Flaky(Passing()),
        should_retry=is_passing,
        delays_s=(1.0,),
        sleep=waits.append,
        random_unit=lambda: unit,
    )
    assert waits == [pytest.approx(expected)]
