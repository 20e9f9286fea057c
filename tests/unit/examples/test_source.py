"""The little language of the sources."""

from pathlib import Path

import pytest

from examples.rendering.flow import flowables, inline
from examples.rendering.source import (
    Callout,
    Clause,
    Fence,
    Grid,
    Heading,
    Items,
    PageBreak,
    Para,
    SourceError,
    parse_blocks,
    read_source,
)
from examples.rendering.theme import theme_of

META = "---\ntitle: A test\nfont: helvetica\n---\n"


def test_each_kind_of_block_is_read() -> None:
    body = """# One
first line
second line

- a
  continued
- b

1. x
2. y

> Warning: hot: very

---page---

~~~facts
A: b

C: d
~~~
"""
    assert parse_blocks(body) == (
        Heading(1, "One"),
        Para("first line second line"),
        Items(("a continued", "b"), is_ordered=False),
        Items(("x", "y"), is_ordered=True),
        Callout("Warning", "hot: very"),
        PageBreak(),
        Fence("facts", ("A: b", "", "C: d")),
    )


def test_a_table_keeps_caption_widths_alignment_and_empty_cells() -> None:
    body = "Table 4. Sums\n| What | How much |\n|----|--:|\n| a | 1 |\n| | 2 |\n"
    assert parse_blocks(body) == (
        Grid(
            caption="Table 4. Sums",
            header=("What", "How much"),
            rows=(("a", "1"), ("", "2")),
            weights=(4, 2),
            is_right=(False, True),
        ),
    )


def test_clauses_are_only_read_in_a_contract() -> None:
    body = "4.2 The Buyer\npays.\n\n(a) at once;\n"
    assert parse_blocks(body, is_contract=True) == (
        Clause("4.2", "The Buyer pays.", 1),
        Clause("(a)", "at once;", 2),
    )
    assert parse_blocks(body) == (Para("4.2 The Buyer pays."), Para("(a) at once;"))


def test_text_is_escaped_before_marks_become_tags() -> None:
    assert inline("a < b & **c** or *d*") == "a &lt; b &amp; <b>c</b> or <i>d</i>"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("~~~facts\nA: b\n", "not closed"),
        ("| a | b |\n| c | d |\n", "without a rule"),
        ("| a | b |\n|---|---|\n| c |\n", "1 cells, not 2"),
        ("> no label here\n", "without a label"),
        ("- a\nb\n", "without an indent"),
    ],
)
def test_a_mistake_in_the_body_is_named(body: str, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        parse_blocks(body)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# No front matter\n", "no front matter"),
        ("---\ntitle\n---\n", "front matter line without a colon"),
    ],
)
def test_a_mistake_in_the_front_matter_names_the_file(
    text: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "plant" / "odd.txt"
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SourceError, match=rf"odd\.txt: {message}"):
        read_source(path, tmp_path)


def test_a_word_too_wide_for_its_column_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "narrow.txt"
    table = "| No. | Mark |\n|-|--------|\n| Transmembrane | x |\n"
    path.write_text(META + table, encoding="utf-8")
    source = read_source(path, tmp_path)
    with pytest.raises(SourceError, match="Transmembrane"):
        flowables(source.blocks, theme_of(source), width=300)
