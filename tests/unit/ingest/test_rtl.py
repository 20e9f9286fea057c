"""Right-to-left lines as the PDF library gives them, and as they read."""

import pytest

from ingest.layout.fragments import make_fragments
from ingest.parsing.base import RawLine, RawPage, RawSpan
from ingest.parsing.pdf.lines import has_lam_alef, repair_lam_alef


def page(*lines: str) -> RawPage:
    made = []
    for number, text in enumerate(lines):
        box = (50.0, 20.0 * number, 450.0, 20.0 * number + 12)
        chars = tuple((450.0 - 5 * i, box[1], 455.0 - 5 * i, box[3]) for i in range(len(text)))
        span = RawSpan(text, box, 10.0, is_bold=False, chars=chars)
        made.append(RawLine((span,), box, (450.0, box[3]), 0, number))
    return RawPage(1, 500.0, 700.0, 0, "1", tuple(made))


@pytest.mark.parametrize(
    ("drawn", "text"),
    [
        (".שלום עולם", "שלום עולם."),
        ("? מה שלום", "מה שלום?"),
        ("،وعليه فإن", "وعليه فإن،"),
        ("שלום.", "שלום."),
        (".5 is a number", ".5 is a number"),
    ],
)
def test_a_stop_in_front_of_a_line_goes_to_its_end(drawn: str, text: str) -> None:
    (fragment,) = make_fragments(page(drawn)).fragments
    assert fragment.text == text
    boxes = fragment.char_boxes()
    if text != drawn:  # and takes its box along
        assert boxes[fragment.normal.origin(len(text) - 1)] == boxes[0]


def test_pages_of_right_to_left_text_are_analysed_in_a_mirror() -> None:
    found = make_fragments(page("שלום עולם", "מה שלום כולם"))
    assert found.is_rtl
    assert found.fragments[0].box[0] == 50.0  # 500 wide: 450 from the right
    assert found.fragments[0].rect == (0.1, 0.0, 0.9, 0.01714)
    assert not make_fragments(page("One Hebrew word: שלום")).is_rtl


def test_the_swapped_ligature_lam_alef_is_put_right() -> None:
    """The alef of a ligature has no width of its own; in "ألم" it has one, and stays."""

    def block(text: str, widths: list[float]) -> dict[str, object]:
        chars, x = [], 100.0
        for char, width in zip(text, widths, strict=True):
            chars.append({"c": char, "bbox": (x - width, 0.0, x, 10.0)})
            x -= width
        return {"type": 0, "lines": [{"spans": [{"size": 10.0, "chars": chars, "text": text}]}]}

    swapped, right = block("اإلن", [3, 0, 6, 4]), block("ألم", [3, 6, 5])
    assert has_lam_alef([swapped])
    repair_lam_alef([swapped, right])

    def read(found: dict[str, object]) -> str:
        return "".join(c["c"] for c in found["lines"][0]["spans"][0]["chars"])  # type: ignore[index]

    assert read(swapped) == "الإن"
    assert read(right) == "ألم"
