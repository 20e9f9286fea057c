"""Sentences of a written answer and the passages that each cites."""

import pytest

from query.answers.markers import MarkerFilter
from query.answers.written_sentences import SentenceAssembler, WrittenSentence


def written(text: str) -> list[WrittenSentence]:
    markers, assembler = MarkerFilter(5), SentenceAssembler()
    items = [*markers.push(text), *markers.end()]
    return [s for item in items for s in assembler.push(item)] + assembler.end()


def cited(text: str) -> list[tuple[str, tuple[int, ...]]]:
    return [(sentence.text, sentence.cited) for sentence in written(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Pumps run [1]. Seals leak [2].", [("Pumps run.", (1,)), ("Seals leak.", (2,))]),
        ("Pumps run. [1] Seals leak. [2]", [("Pumps run.", (1,)), ("Seals leak.", (2,))]),
        ("Pumps run.[1] Seals leak.[2][3]", [("Pumps run.", (1,)), ("Seals leak.", (2, 3))]),
        ("Pumps run. [1] [2] Seals leak.", [("Pumps run.", (1, 2)), ("Seals leak.", ())]),
        ("[1] Pumps run. [2] Seals leak.", [("Pumps run.", (1, 2)), ("Seals leak.", ())]),
        ("Pumps [1] run [2] on oil [1].", [("Pumps run on oil.", (1, 2))]),
        ("Pumps run\n[2] Seals leak", [("Pumps run", ()), ("Seals leak", (2,))]),
        ("Pumps run.\n\n[2]\n\nSeals leak.", [("Pumps run.", (2,)), ("Seals leak.", ())]),
        ("Pumps run.\n[2]", [("Pumps run.", (2,))]),
        ("- Pumps run [1]\n- Seals leak [2]", [("- Pumps run", (1,)), ("- Seals leak", (2,))]),
        ("1. Pumps run [1]\n2. Seals leak", [("1. Pumps run", (1,)), ("2. Seals leak", ())]),
        ("泵每年测试【1】。密封漏水【2】。", [("泵每年测试。", (1,)), ("密封漏水。", (2,))]),
        ("Is it dry [1]? Yes [2]!", [("Is it dry?", (1,)), ("Yes!", (2,))]),
        ('"It runs [1]." Then it stops.', [('"It runs."', (1,)), ("Then it stops.", ())]),
        ("[1]", []),
        ("", []),
    ],
)
def test_a_marker_belongs_to_its_sentence(
    text: str, expected: list[tuple[str, tuple[int, ...]]]
) -> None:
    assert cited(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Dr. Meier tests pumps, e.g. P-12, at 3.5 bar.",
        "See Fig. 3 and No. 5 of the manual.",
        "Am 3. Oktober wird z.B. die Pumpe geprüft.",
        "Run `a. B. C` first.",
        "```\nOne. Two.\nThree.\n```",
    ],
)
def test_what_is_no_end_of_a_sentence(text: str) -> None:
    assert cited(text) == [(text, ())]


def test_leads_keep_the_layout() -> None:
    assert [s.lead for s in written("\nOne. Two.\n\n- Three")] == ["\n", " ", "\n\n"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("According to [1], pumps run.", ("Pumps run.", (1,))),
        ("As stated in passage [2], it runs.", ("It runs.", (2,))),
        ("Laut [1], läuft sie.", ("Läuft sie.", (1,))),
        ("According to the law, [1] it runs.", ("According to the law, it runs.", (1,))),
    ],
)
def test_a_phrase_that_lost_its_marker_goes(
    text: str, expected: tuple[str, tuple[int, ...]]
) -> None:
    assert cited(text) == [expected]


def test_a_sentence_comes_out_one_word_after_its_end() -> None:
    markers, assembler = MarkerFilter(5), SentenceAssembler()
    out: dict[str, list[str]] = {}
    for piece in ["Pumps run", ".", " [1]", " Seals", " leak", "."]:
        items = markers.push(piece)
        out[piece] = [s.text for item in items for s in assembler.push(item)]
    assert {piece: texts for piece, texts in out.items() if texts} == {" leak": ["Pumps run."]}
    assert [s.text for s in assembler.end()] == ["Seals leak."]
