"""Stop strings over any cut of the text, against the whole text."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.text.stops import StopMatcher

SMALL = st.text("ab\n.", max_size=30)
STOPS = st.lists(st.text("ab\n.", min_size=1, max_size=5), min_size=1, max_size=4)


def naive(text: str, stops: list[str], include_stop: bool) -> tuple[str, bool]:
    """Character by character: at the first one that completes a stop string, the longest that ends
    there."""
    for end in range(1, len(text) + 1):
        found = [stop for stop in stops if text[:end].endswith(stop)]
        if found:
            longest = max(found, key=len)
            return text[:end] if include_stop else text[: end - len(longest)], True
    return text, False


def run(pieces: list[str], stops: list[str], include_stop: bool = False) -> tuple[list[str], bool]:
    """What was shown after each piece, and at last by `flush`."""
    matcher = StopMatcher(stops, include_stop)
    shown, has_stopped = [], False
    for piece in pieces:
        text, has_stopped = matcher.push(piece)
        shown.append(text)
    return [*shown, matcher.flush()], has_stopped


def cut(text: str, places: list[int]) -> list[str]:
    borders = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    return [text[a:b] for a, b in pairwise(borders)] or [text]


@given(text=SMALL, stops=STOPS, include_stop=st.booleans(), places=st.lists(st.integers(0, 99)))
def test_any_cut_gives_what_the_whole_text_gives(
    text: str, stops: list[str], include_stop: bool, places: list[int]
) -> None:
    shown, has_stopped = run(cut(text, places), stops, include_stop)
    assert ("".join(shown), has_stopped) == naive(text, stops, include_stop)


@given(text=SMALL, stops=STOPS, places=st.lists(st.integers(0, 99)))
def test_nothing_shown_is_taken_back_and_nothing_safe_is_held(
    text: str, stops: list[str], places: list[int]
) -> None:
    """After each piece: what is shown is a beginning of the end result whatever follows, and what
    is held back could indeed become a stop string."""
    matcher = StopMatcher(stops)
    seen = shown = ""
    for piece in cut(text, places):
        new, has_stopped = matcher.push(piece)
        seen, shown = seen + piece, shown + new
        if has_stopped:
            return
        held = seen.removeprefix(shown)
        assert shown + held == seen
        assert not held or any(stop.startswith(held) and stop != held for stop in stops)
        for suffix in range(1, len(seen) + 1):
            tail = seen[-suffix:]
            if any(stop.startswith(tail) for stop in stops):
                assert held.endswith(tail), "a beginning of a stop string was shown"


@pytest.mark.parametrize(
    ("pieces", "stops", "shown"),
    [
        (["Hello wor", "ld"], ["world"], ["Hello ", "", ""]),
        (["a<", "b"], ["<|end|>"], ["a", "<b", ""]),
        (["a<|en", "d|>b"], ["<|end|>"], ["a", "", ""]),
        (["aab", "aac"], ["aabaac"], ["", "", ""]),
        (["aaab", "aac"], ["aabaac"], ["a", "", ""]),
        (["x\n", "\n"], ["\n\n", "\n\n\n"], ["x", "", ""]),
        (["abc"], ["bc", "abcd"], ["a", ""]),
        (["abcd"], ["bcd", "abcd"], ["", ""]),
    ],
)
def test_examples(pieces: list[str], stops: list[str], shown: list[str]) -> None:
    assert run(pieces, stops)[0] == shown


def test_after_the_end_everything_is_dropped() -> None:
    matcher = StopMatcher(["."])
    assert matcher.push("a.b") == ("a", True)
    assert matcher.push("c") == ("", True)
    assert matcher.flush() == ""


def test_without_stop_strings_text_passes_at_once() -> None:
    matcher = StopMatcher(())
    assert matcher.push("a") == ("a", False)
    assert matcher.flush() == ""


def test_what_was_held_is_shown_when_nothing_follows() -> None:
    matcher = StopMatcher(["<end>"])
    assert matcher.push("a<en") == ("a", False)
    assert matcher.flush() == "<en"
    assert matcher.flush() == ""


def test_long_stop_strings_cost_no_more_than_their_length() -> None:
    """A thousand pieces against a stop string of ten thousand characters."""
    stop = "ab" * 5_000
    matcher = StopMatcher([stop])
    text = "".join(matcher.push("ab" * 5)[0] for _ in range(999))
    assert text == ""
    assert matcher.push("x") == ("ab" * 4_995 + "x", False)
