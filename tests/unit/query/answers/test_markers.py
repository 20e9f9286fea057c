"""Markers out of a whole text; that pieces change nothing is tests/property/test_markers.py."""

import pytest

from query.answers.markers import Cites, MarkerFilter, Words


def filtered(text: str, num_passages: int = 3) -> list[Words | Cites]:
    markers = MarkerFilter(num_passages)
    items: list[Words | Cites] = []
    for item in [*markers.push(text), *markers.end()]:
        last = items[-1] if items else None
        assert isinstance(item, Cites) or item.text
        if isinstance(item, Words) and isinstance(last, Words) and item.is_code == last.is_code:
            items[-1] = Words(last.text + item.text, item.is_code)
        else:
            items.append(item)
    return items


def shown(text: str, num_passages: int = 3) -> str:
    """Words as they are, markers as <1,2>."""
    return "".join(
        item.text if isinstance(item, Words) else f"<{','.join(map(str, item.numbers))}>"
        for item in filtered(text, num_passages)
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Pumps are tested yearly [1].", "Pumps are tested yearly <1>."),
        ("yearly[1].", "yearly<1>."),
        ("a [1][2] b", "a <1><2> b"),
        ("a [1, 2] b", "a <1,2> b"),
        ("a [1;3] b", "a <1,3> b"),
        ("a [1-3] b", "a <1,2,3> b"),
        ("a [1–2, 3]", "a <1,2,3>"),
        ("a [ 2 ] b", "a <2> b"),
        ("a [2, 2]", "a <2>"),
        ("泵每年测试【1】。", "泵每年测试<1>。"),
        ("a ［２］ b", "a <2> b"),
        ("[1] opens", "<1> opens"),
    ],
)
def test_markers_are_told_from_words(text: str, expected: str) -> None:
    assert shown(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a [4].", "a."),
        ("a [4] b", "a b"),
        ("a [0].", "a."),
        ("a [1, 9] b", "a <1> b"),
        ("a [9][1] b", "a<1> b"),
        ("a [2-9] b", "a <2,3> b"),
        ("[7] Pumps run.", "Pumps run."),
        ("One.\n[7] Pumps run.", "One.\nPumps run."),
        ("a\n[9]", "a\n"),
    ],
)
def test_numbers_of_no_passage_are_dropped_with_their_white_space(text: str, expected: str) -> None:
    assert shown(text) == expected


def test_without_passages_no_marker_is_left() -> None:
    assert shown("a [1] b [2].", num_passages=0) == "a b."


@pytest.mark.parametrize(
    "text",
    [
        "he wrote [sic] so",
        "an array arr[0] and m[0][1] here",
        "the law [2024] and [1.5] and [-1]",
        "[] and [ ] and [a1] and [1a] and [1,] and [,1]",
        "half [1",
        "open [",
        "open [1, ",
        "a ] b } c",
        "white \n space \n\n at the end \n",
        "tilde ~~ and ~ here",
    ],
)
def test_other_brackets_stay_text(text: str) -> None:
    assert filtered(text) == [Words(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("use `a[1]` [1]", [Words("use "), Words("`a[1]`", True), Words(" "), Cites((1,))]),
        ("``a`[1]`` [2]", [Words("``a`[1]``", True), Words(" "), Cites((2,))]),
        (
            "so:\n```py\nx[1]\n``\n```\n[1] y",
            [Words("so:\n"), Words("```py\nx[1]\n``\n```", True), Words("\n"), Cites((1,)),
             Words(" y")],
        ),
        ("~~~\n[1]\n~~~~", [Words("~~~\n[1]\n~~~~", True)]),
        ("```\n[1] never closed", [Words("```\n[1] never closed", True)]),
        ("a lone ` tick\nthen [1]", [Words("a lone "), Words("` tick", True), Words("\nthen "),
                                     Cites((1,))]),
    ],
)  # fmt: skip
def test_code_passes_untouched(text: str, expected: list[Words | Cites]) -> None:
    assert filtered(text) == expected


def test_half_a_marker_is_held_and_the_rest_is_not() -> None:
    markers = MarkerFilter(2)
    assert markers.push("tested yearly ") == [Words("tested yearly")]
    assert markers.push("[") == []
    assert markers.push("1") == []
    assert markers.push("]. Then") == [Words(" "), Cites((1,)), Words(". Then")]
    assert markers.push(" [") == []
    assert markers.push("x") == [Words(" [x")]
    assert markers.end() == []


def test_what_is_held_is_bounded() -> None:
    markers = MarkerFilter(2)
    text = "[" + "1, " * 200
    out = "".join(i.text for i in markers.push(text) if isinstance(i, Words))
    assert out == text.rstrip()
