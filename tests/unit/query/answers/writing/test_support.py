"""Verdicts on sentences and on each of their citations."""

from collections.abc import Sequence

from core.domain.answers import Verdict
from core.domain.pages import Location
from query.answers.evidence import Evidence
from query.answers.quotes import Quote
from query.answers.verification import Support
from query.answers.writing.given import GivenPassage
from query.answers.writing.support import Cited, Judged, judge
from query.answers.written_sentences import WrittenSentence
from tests.passages import make_passage, make_scored, make_version

S, W, U = Verdict.SUPPORTED, Verdict.WEAK, Verdict.UNSUPPORTED


def quote(text: str, point: str) -> Quote:
    passage = make_passage(text, point)
    evidence = Evidence(passage, 0, len(text), make_scored(passage))
    return Quote(evidence, make_version(), text, (Location(1, 0, len(text), ()),), {})


GIVEN = [
    GivenPassage(1, "", "a b", (quote("a.", "p1"), quote("b.", "p2"))),
    GivenPassage(2, "", "c", (quote("c.", "p3"),)),
]


def judged(cited: tuple[int, ...], verdicts: dict[str, Verdict]) -> Judged:
    """`verdicts` by the quotes that a sentence is held against, joined."""

    def verify(
        sentence: str, quotes: Sequence[str], language: str, *, headings: Sequence[str]
    ) -> Support:
        assert language == "en"
        assert set(headings) == {""}
        verdict = verdicts["".join(quotes).replace(".", "")]
        return Support(verdict, {S: 1.0, W: 0.5, U: 0.0}[verdict], ())

    return judge(WrittenSentence("x", cited), GIVEN, verify)


def texts(cited: Cited) -> list[str]:
    return [quote.text for quote in cited.quotes]


def test_of_a_passage_the_quote_that_supports_most_is_shown() -> None:
    found = judged((1,), {"a": U, "b": S})
    assert (found.verdict, found.support_score) == (S, 1.0)
    (cited,) = found.cited
    assert (texts(cited), cited.verdict) == (["b."], S)
    assert texts(judged((1,), {"a": U, "b": U, "ab": U}).cited[0]) == ["a."]


def test_two_quotes_of_a_passage_are_shown_where_only_both_say_it() -> None:
    (cited,) = judged((1,), {"a": U, "b": W, "ba": S}).cited
    assert (texts(cited), cited.verdict) == (["b.", "a."], S)
    (cited,) = judged((1,), {"a": U, "b": W, "ba": W}).cited
    assert (texts(cited), cited.verdict) == (["b."], W)


def test_a_sentence_without_citation_is_held_against_everything_and_at_best_weak() -> None:
    found = judged((), {"abc": S})
    assert (found.verdict, found.cited) == (W, ())
    assert judged((), {"abc": W}).verdict is W
    assert judged((), {"abc": U}).verdict is U


def test_quotes_that_support_only_together_are_each_at_least_weak() -> None:
    found = judged((1, 2), {"a": U, "b": W, "ba": W, "c": U, "bc": S})
    assert found.verdict is S
    assert [(texts(c), c.verdict) for c in found.cited] == [(["b."], W), (["c."], W)]


def test_a_citation_that_adds_nothing_is_told_so() -> None:
    found = judged((1, 2), {"a": S, "b": U, "c": U, "ac": S})
    assert found.verdict is S
    assert [c.verdict for c in found.cited] == [S, U]


def test_what_not_even_all_quotes_support_is_unsupported() -> None:
    found = judged((2, 1), {"a": U, "b": U, "ab": U, "c": W, "ca": U})
    assert found.verdict is U
    assert [c.passage.number for c in found.cited] == [2, 1]


def test_a_name_that_only_the_label_has_is_no_objection() -> None:
    text = "The shaft seal is replaced after 4,000 hours."
    sentence = WrittenSentence("The shaft seal of the PX-200 is replaced after 4,000 hours.", (1,))
    for label, verdict in (("PX-200, service manual", S), ("Service manual", U)):
        given = [GivenPassage(1, label, text, (quote(text, "p1"),))]
        assert judge(sentence, given).verdict is verdict
