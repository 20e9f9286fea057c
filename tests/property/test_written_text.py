"""Written text on its way to the reader, for text of any shape that comes in pieces of any size."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.domain.answers import Verdict
from query.answers.draft import Draft
from query.answers.events import Event, EventType
from query.answers.projection import answer_to_json
from query.answers.writing.written_text import HeldText, LiveText, Shown, WrittenText
from tests.written_text import GIVEN, QUOTES, TEXTS, make_draft
from tests.written_world import check_ranges

ACTIVE = ("](", "][", "]:", "![", "<a", "<|", "</", "<!", "://", "www.")


words = st.sampled_from(
    [
        *(word for text in TEXTS for word in text.split()),
        "no", "4", "30", "[1]", "[2]", "[3]", "[9]", "[1, 3]", "[1][2]", ".", "!", "?", "\n",
        "\n\n", "- ", "`code [1]`", "```\nx [2]\n```", "According to [1],", "![a](http://b.c)",
        "<img", "<|x", "[a]:", "www.b.c", "e.g.", "“", "”", "\u202e", "\x00", "\r\n", "[", "]",
        "](", "(1)", "😀", "ß", "İ", "\u2028", "[１]", "【2】", "http://x.y",
    ]
)  # fmt: skip
written = st.one_of(
    st.lists(words, max_size=30).map(" ".join),
    st.lists(words, max_size=30).map("".join),
    st.text(max_size=60),
)


def cut(text: str, places: Sequence[int]) -> list[str]:
    borders = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    return [text[start:end] for start, end in pairwise(borders)]


def send(
    draft: Draft, text: WrittenText, pieces: Sequence[str], *, breaks_off: bool = False
) -> list[Event]:
    events = [event for piece in pieces for event in text.push(piece)]
    events += list(text.break_off() if breaks_off else text.end(is_cut=False))
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    return events


def check(draft: Draft, events: Sequence[Event]) -> dict[str, Any]:
    """The deltas are the text, ranges point at what they claim, nothing can act."""
    found = answer_to_json(draft.finished())
    text = found["text"]
    deltas = [e.payload["delta"] for e in events if e.type is EventType.TEXT_DELTA]
    assert "".join(deltas) == text
    assert draft.length == len(text)
    text.encode()  # no half of a character
    check_ranges(found)
    assert not any(active in text.lower() for active in ACTIVE)
    added = [e.payload["citation"] for e in events if e.type is EventType.CITATION_ADDED]
    assert added == found["citations"]
    for citation in found["citations"]:
        (cited,) = citation["sources"]
        assert cited["quote"] in TEXTS
    of_number = {c["n"]: c["sources"][0]["quote"] for c in found["citations"]}
    assert all(of_number[c["n"]] == c["sources"][0]["quote"] for c in found["citations"])
    return found


@given(written, st.lists(st.integers(0, 1000), max_size=12), st.booleans())
@settings(max_examples=200)
def test_live_text(text: str, places: Sequence[int], breaks_off: bool) -> None:
    draft = make_draft()
    live = LiveText(draft, GIVEN, Shown(GIVEN))
    events = send(draft, live, cut(text, places), breaks_off=breaks_off)
    found = check(draft, events)
    for citation in found["citations"]:
        marker = citation["marker"]
        assert (
            citation["end"] <= marker["start"]
            or citation["start"] >= marker["end"]
            or (citation["start"] <= marker["start"] < marker["end"] <= citation["end"])
        )


@given(written, st.lists(st.integers(0, 1000), max_size=12))
@settings(max_examples=200)
def test_however_it_is_cut_the_same_live_text_comes_out(text: str, places: Sequence[int]) -> None:
    whole, pieces = make_draft(), make_draft()
    send(whole, LiveText(whole, GIVEN, Shown(GIVEN)), [text])
    send(pieces, LiveText(pieces, GIVEN, Shown(GIVEN)), cut(text, places))
    one, other = whole.finished(), pieces.finished()
    assert one.text == other.text
    assert [c.n for c in one.citations] == [c.n for c in other.citations]
    assert [(s.start, s.end, s.verdict) for s in one.sentences] == [
        (s.start, s.end, s.verdict) for s in other.sentences
    ]


@given(written, st.lists(st.integers(0, 1000), max_size=12))
@settings(max_examples=200)
def test_held_text_has_no_sentence_that_is_not_supported(text: str, places: Sequence[int]) -> None:
    draft = make_draft()
    held = HeldText(draft, GIVEN, Shown(GIVEN), QUOTES)
    events = send(draft, held, cut(text, places))
    found = check(draft, events)
    assert all(s["verdict"] != Verdict.UNSUPPORTED.value for s in found["sentences"])
    assert all(c["verdict"] != Verdict.UNSUPPORTED.value for c in found["citations"])
    replaced = [s for s in found["sentences"] if s["is_replaced"]]
    shown = [found["text"][s["start"] : s["end"]] for s in replaced]
    assert len(set(shown)) == len(shown)
    assert all(quote.strip("“”") in TEXTS for quote in shown)
    covered = sum(s["end"] - s["start"] for s in found["sentences"])
    markers = sum(len(f"[{c['n']}]") for c in found["citations"])
    assert len("".join(found["text"].split())) <= covered + markers


@pytest.mark.parametrize("kind", ["live", "held"])
@given(text=written)
@settings(max_examples=100)
def test_what_was_sent_stays_when_more_comes(kind: str, text: str) -> None:
    """Every prefix of the events makes a prefix of the text."""
    draft = make_draft()
    shown = Shown(GIVEN)
    way: WrittenText = (
        LiveText(draft, GIVEN, shown) if kind == "live" else HeldText(draft, GIVEN, shown, QUOTES)
    )
    seen = ""
    for character in text:
        for event in way.push(character):
            seen += event.payload.get("delta", "")
        assert draft.log.text == seen
    list(way.end(is_cut=False))
    assert draft.log.text.startswith(seen)
