"""Reading order, paragraphs, tables and headings of pages, drawn as various writers draw them."""

from pathlib import Path

import pytest

from core.domain.pages import ElementKind, Page
from ingest.layout.joining import join_of
from tests.builders_pdf import Sheet, pdf
from tests.pdf_reading import page_of, pages_of, texts

HEADING, PARAGRAPH, TABLE = ElementKind.HEADING, ElementKind.PARAGRAPH, ElementKind.TABLE
LIST_ITEM, CAPTION = ElementKind.LIST_ITEM, ElementKind.CAPTION
PROSE = [
    "The pump must be stopped before the cover is",
    "removed, and the gauge must read zero for at",
    "least five minutes before work on it begins.",
]


def read(sheet: Sheet, folder: Path) -> Page:
    return page_of(pdf([sheet]), folder)


# -------------------------------------------------------------------------------- paragraphs


def test_lines_of_a_paragraph_read_as_running_text(tmp_path: Path) -> None:
    page = read(Sheet().lines(72, 700, PROSE), tmp_path)
    assert texts(page) == [" ".join(PROSE)]
    assert [page.text[line.start : line.end] for line in page.lines] == PROSE


def test_a_gap_or_an_indent_begins_a_paragraph(tmp_path: Path) -> None:
    sheet = Sheet().lines(72, 700, PROSE).lines(72, 640, PROSE)
    sheet.text(90, 600.4, "Indented first lines begin one as well, and go on").text(
        72, 587.2, "at the margin like all the lines that follow them."
    )
    assert len(texts(read(sheet, tmp_path))) == 3


def test_pieces_of_one_line_are_one_line(tmp_path: Path) -> None:
    sheet = Sheet().text(72, 700, "Tighten to").text(130, 700, "45 Nm", font="F2")
    sheet.text(166, 700, "and check again.")
    page = read(sheet, tmp_path)
    assert texts(page) == ["Tighten to 45 Nm and check again."]
    assert len(page.lines) == 1


def test_exponents_stay_at_their_number(tmp_path: Path) -> None:
    sheet = Sheet().text(72, 700, "An area of 12 m").text(150.6, 704, "2", size=7)
    sheet.text(154.5, 700, " is needed.")
    assert texts(read(sheet, tmp_path)) == ["An area of 12 m2 is needed."]


@pytest.mark.parametrize(
    ("line", "following", "words", "joined"),
    [
        ("the infor-", "mation is", set(), "the information is"),
        ("a well-", "known rule", set(), "a well-known rule"),
        ("state-of-the-", "art pumps", set(), "state-of-the-art pumps"),
        ("the PX-", "type valve", set(), "the PX-type valve"),
        ("e-", "mail address", {"e-mail"}, "e-mail address"),
        ("model PX-", "200 is", set(), "model PX-200 is"),
        ("Ein-", "und Ausgang", set(), "Ein- und Ausgang"),
        ("Miet-", "vertrag vom", set(), "Mietvertrag vom"),
        ("co-", "operate", {"cooperate", "co-operate"}, "cooperate"),
        ("soft\u00ad", "ware", set(), "software"),
        ("a dash -", "and more", set(), "a dash - and more"),
        ("plain", "words", set(), "plain words"),
        ("保険約款の", "規定", set(), "保険約款の規定"),
    ],
)
def test_words_parted_at_a_line_end(
    line: str, following: str, words: set[str], joined: str
) -> None:
    num_cut, separator = join_of(line, following, words)
    assert line[: len(line) - num_cut] + separator + following == joined


def test_offsets_hold_around_a_hyphen_that_went(tmp_path: Path) -> None:
    page = read(Sheet().lines(72, 700, ["All the infor-", "mation is here."]), tmp_path)
    assert page.text == "All the information is here."
    assert [page.text[line.start : line.end] for line in page.lines] == [
        "All the infor",
        "mation is here.",
    ]


# ------------------------------------------------------------------------------------- lists


def test_list_items_are_elements_with_their_numbers(tmp_path: Path) -> None:
    sheet = Sheet()
    for number, y in ((1, 700), (2, 660)):
        sheet.text(72, y, f"({number})").text(100, y, "The contractor shall inform the owner")
        sheet.text(100, y - 13.2, "of every defect without delay.")
    page = read(sheet, tmp_path)
    assert texts(page, LIST_ITEM) == [
        "(1) The contractor shall inform the owner of every defect without delay.",
        "(2) The contractor shall inform the owner of every defect without delay.",
    ]
    assert "\n(2)" in page.text


def test_numbers_drawn_before_all_texts_go_back_to_their_lines(tmp_path: Path) -> None:
    sheet = Sheet()
    for number, y in ((1, 700), (2, 660)):
        sheet.text(72, y, f"{number}.")
    for y, words in ((700, "Close the valve."), (660, "Open the cover.")):
        sheet.text(92, y, words)
    assert texts(read(sheet, tmp_path), LIST_ITEM) == ["1. Close the valve.", "2. Open the cover."]


def test_text_after_a_list_is_no_part_of_its_last_item(tmp_path: Path) -> None:
    sheet = Sheet().text(72, 700, "\x95").text(90, 700, "Close the valve.")
    sheet.text(72, 686.8, "The following applies to every pump of this series.")
    assert texts(read(sheet, tmp_path)) == [
        "• Close the valve.",
        "The following applies to every pump of this series.",
    ]


# ----------------------------------------------------------------------------------- columns

LEFT = [f"Left column line {name} goes on here" for name in ("one", "two", "three", "four", "five")]
RIGHT = [f"right column line {name} goes on now" for name in ("six", "seven", "ate", "nine", "ten")]


def test_columns_drawn_one_after_the_other(tmp_path: Path) -> None:
    page = read(Sheet().lines(60, 700, LEFT).lines(320, 700, RIGHT), tmp_path)
    assert " ".join(page.text.split()) == " ".join([*LEFT, *RIGHT])


def test_columns_drawn_line_by_line_across(tmp_path: Path) -> None:
    sheet = Sheet()
    for number, (left, right) in enumerate(zip(LEFT, RIGHT, strict=True)):
        y = 700 - 13.2 * number
        sheet.text(60, y, left).text(320, y, right)
    page = read(sheet, tmp_path)
    assert " ".join(page.text.split()) == " ".join([*LEFT, *RIGHT])
    assert not texts(page, TABLE)


def test_a_folio_between_columns_glues_nothing(tmp_path: Path) -> None:
    sheet = Sheet().lines(60, 700, LEFT).lines(320, 700, RIGHT).text(295, 40, "12")
    assert texts(read(sheet, tmp_path))[-1] == "12"


# ------------------------------------------------------------------------------------ tables

ROWS = [
    ["Model", "Torque", "Pressure"],
    ["PX-200", "45 Nm", "6.5 bar"],
    ["PX-300", "60 Nm", "8 bar"],
    ["PX-400", "75 Nm", "9 bar"],
]
TABLE_TEXT = "\n".join(" | ".join(row) for row in ROWS)
XS = (80, 200, 320)


def table(sheet: Sheet, *, top: float = 700, step: float = 20) -> Sheet:
    for number, row in enumerate(ROWS):
        for x, cell in zip(XS, row, strict=True):
            sheet.text(x, top - step * number, cell)
    return sheet


def test_cells_in_line_are_a_table(tmp_path: Path) -> None:
    page = read(table(Sheet().lines(72, 780, PROSE[:2])), tmp_path)
    assert texts(page, TABLE) == [TABLE_TEXT]
    cells = [page.text[line.start : line.end] for line in page.lines[2:]]
    assert cells == [cell for row in ROWS for cell in row]


def test_a_table_with_a_drawn_grid(tmp_path: Path) -> None:
    sheet = table(Sheet())
    for number in range(5):
        sheet.rule(72, 715 - 20 * number, 440, 715 - 20 * number)
    for x in (72, 192, 312, 440):
        sheet.rule(x, 715, x, 635)
    assert texts(read(sheet, tmp_path)) == [TABLE_TEXT]


def test_wrapped_and_empty_cells_of_a_grid(tmp_path: Path) -> None:
    sheet = Sheet().text(80, 700, "Part").text(200, 700, "Note").text(320, 700, "Price")
    sheet.text(80, 680, "Housing,").text(80, 667, "extended").text(320, 680, "1,250 EUR")
    sheet.text(80, 645, "Seal").text(200, 645, "spare").text(320, 645, "12 EUR")
    for y in (715, 695, 660, 635):
        sheet.rule(72, y, 440, y)
    for x in (72, 192, 312, 440):
        sheet.rule(x, 715, x, 635)
    assert texts(read(sheet, tmp_path)) == [
        "Part | Note | Price\nHousing, extended | | 1,250 EUR\nSeal | spare | 12 EUR"
    ]


def test_a_table_of_stripes_and_one_of_rules(tmp_path: Path) -> None:
    stripes = Sheet()
    for number in range(4):
        stripes.fill(72, 695 - 20 * number, 368, 20, "0.9 0.9 0.9" if number % 2 else "1 1 1")
    assert texts(read(table(stripes), tmp_path)) == [TABLE_TEXT]
    rules = Sheet()
    for number in range(4):
        rules.rule(72, 694 - 20 * number, 440, 694 - 20 * number)
    assert texts(read(table(rules), tmp_path)) == [TABLE_TEXT]


def test_rules_of_the_same_width_elsewhere_are_no_part_of_a_table(tmp_path: Path) -> None:
    """A line under the page's head, a shaded header and rules: all from margin to margin."""
    sheet = Sheet().text(80, 790, "Pumps & Water Ltd").text(330, 790, "Schedule, issue 3")
    sheet.rule(72, 780, 440, 780)
    sheet.text(80, 750, "Alarms and interlocks", size=16).text(80, 725, "Torques of all models")
    sheet.fill(72, 694, 368, 20, "0.9 0.9 0.9")
    for number in range(1, 4):
        sheet.rule(72, 694 - 20 * number, 440, 694 - 20 * number)
    page = read(table(sheet), tmp_path)
    assert texts(page, TABLE) == [TABLE_TEXT]
    assert "Alarms and interlocks" in texts(page)


def test_a_cell_drawn_after_its_wrapped_neighbour_stays_in_its_row(tmp_path: Path) -> None:
    """Cell by cell, without rules: the last cell comes after the second line of the one before."""
    sheet = Sheet()
    for number, share in enumerate(("20 %", "30 %", "50 %")):
        y = 700 - 30 * number
        sheet.text(80, y, f"{number + 1}").text(120, y, share).text(
            180, y, "Delivery, in proportion"
        )
        sheet.text(180, y - 13, "to the goods").text(340, y, "Consignment note")
    rows = [
        f"{number} | {share} | Delivery, in proportion to the goods | Consignment note"
        for number, share in ((1, "20 %"), (2, "30 %"), (3, "50 %"))
    ]
    assert texts(read(sheet, tmp_path), TABLE) == ["\n".join(rows)]


def test_a_unit_in_a_column_of_its_own_is_a_cell(tmp_path: Path) -> None:
    sheet = Sheet()
    for number, unit in enumerate(("bar", "%", "W")):
        y = 700 - 20 * number
        sheet.text(80, y, "Accuracy").text(250, y, unit).text(300, y, "1,5").text(400, y, "2,0")
    assert texts(read(sheet, tmp_path), TABLE)[0].split("\n")[1] == "Accuracy | % | 1,5 | 2,0"


def test_a_cell_drawn_column_by_column_comes_to_its_row(tmp_path: Path) -> None:
    sheet = Sheet()
    for column, x in enumerate(XS):
        for number, row in enumerate(ROWS):
            sheet.text(x, 700 - 20 * number, row[column])
    for number in range(5):
        sheet.rule(72, 715 - 20 * number, 440, 715 - 20 * number)
    for x in (72, 192, 312, 440):
        sheet.rule(x, 715, x, 635)
    assert texts(read(sheet, tmp_path)) == [TABLE_TEXT]


def test_a_currency_sign_stays_at_its_number(tmp_path: Path) -> None:
    sheet = Sheet()
    for number, value in enumerate(("1,183", "626", "92")):
        y = 700 - 20 * number
        sheet.text(80, y, "Loans").text(250, y, "$").text(300, y, value).text(400, y, value)
    assert texts(read(sheet, tmp_path), TABLE)[0].split("\n")[0] == "Loans | $ 1,183 | 1,183"


def test_a_frame_around_text_is_no_table(tmp_path: Path) -> None:
    sheet = Sheet().lines(80, 700, PROSE)
    sheet.rule(72, 715, 440, 715).rule(72, 660, 440, 660)
    sheet.rule(72, 715, 72, 660).rule(440, 715, 440, 660)
    page = read(sheet, tmp_path)
    assert texts(page, TABLE) == []
    assert texts(page) == [" ".join(PROSE)]


def test_a_table_set_sideways_reads_row_by_row(tmp_path: Path) -> None:
    sheet = Sheet()
    for number, row in enumerate(ROWS):
        for x, cell in zip(XS, row, strict=True):
            turned = f"BT /F1 11 Tf 0 1 -1 0 {100 + 20 * number} {x} Tm ({cell}) Tj ET"
            sheet.operators.append(turned)
    assert texts(read(sheet, tmp_path)) == [TABLE_TEXT]


# ---------------------------------------------------------------------------------- headings


def headed() -> Sheet:
    sheet = Sheet().text(72, 780, "Maintenance manual", size=24, font="F2")
    sheet.text(72, 740, "Safety", size=16, font="F2").lines(72, 715, PROSE)
    sheet.text(72, 660, "2.1 Torques", size=13, font="F2").lines(72, 640, PROSE)
    sheet.text(72, 590, "Warning", font="F2").lines(72, 570, PROSE)
    return sheet


def test_headings_by_size_number_and_weight(tmp_path: Path) -> None:
    page = read(headed(), tmp_path)
    found = [
        (page.text[element.start : element.end], element.level)
        for element in page.elements
        if element.kind is HEADING
    ]
    assert found == [("Maintenance manual", 1), ("Safety", 2), ("2.1 Torques", 3), ("Warning", 3)]


def test_the_outline_goes_before_sizes(tmp_path: Path) -> None:
    sheet = Sheet().text(72, 740, "Scope of this part").lines(72, 700, PROSE)
    without, with_outline = pdf([sheet]), pdf([sheet], outline=[("Scope of  this Part", 1)])
    assert texts(page_of(without, tmp_path), HEADING) == []
    assert texts(page_of(with_outline, tmp_path), HEADING) == ["Scope of this part"]


def test_the_outline_title_of_another_page_is_none_here(tmp_path: Path) -> None:
    sheets = [Sheet().text(72, 740, "Scope").lines(72, 700, PROSE) for _ in range(2)]
    first, second = pages_of(pdf(sheets, outline=[("Scope", 2)]), tmp_path)
    assert texts(first, HEADING) == []
    assert texts(second, HEADING) == ["Scope"]


def test_bold_words_in_a_sentence_are_no_heading(tmp_path: Path) -> None:
    sheet = (
        Sheet().text(72, 700, "Never", font="F2").text(107, 700, "open the cover while it runs.")
    )
    sheet.text(72, 686.8, "It must have come to rest.")
    assert texts(read(sheet, tmp_path), HEADING) == []


def test_a_table_of_contents_is_a_list(tmp_path: Path) -> None:
    sheet = Sheet().text(72, 740, "Contents", size=18, font="F2")
    for number in range(5):
        sheet.text(72, 700 - 14 * number, f"Chapter {number + 1} " + "." * 40 + f" {number + 3}")
    page = read(sheet, tmp_path)
    assert texts(page, LIST_ITEM) == [f"Chapter {n} ... {n + 2}" for n in range(1, 6)]
    assert texts(page, HEADING) == ["Contents"]


def test_captions_are_told_from_text(tmp_path: Path) -> None:
    sheet = Sheet().text(72, 700, "Table 2: Torques by model", size=9).lines(72, 660, PROSE)
    assert texts(read(sheet, tmp_path), CAPTION) == ["Table 2: Torques by model"]
