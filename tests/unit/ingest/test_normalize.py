"""What cleaning does to a printed line."""

import pytest

from ingest.normalize import clean_text, normalize


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("scienti\ufb01c \ufb03ne", "scientific ffine"),
        ("x\u00b2 \u00bd H\u2082O", "x\u00b2 \u00bd H\u2082O"),  # exponents keep their meaning
        ("u\u0308ber", "\u00fcber"),
        ("a\u0000b\u0007c", "abc"),
        ("a\u00a0\u2003b\tc", "a b c"),
        ("pay\u202eload\u202c", "payload"),
        ("soft\u00adware", "software"),
        ("soft\u00ad", "soft\u00ad"),  # the mark of a parted word stays at the line's end
        ("\uf0b7 item", "\u2022 item"),
        ("\ufefb", "\u0644\u0627"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("Chapter 1 .......... 12", "Chapter 1 ... 12"),
        ("Total \ufffd\ufffd\ufffd\ufffd\ufffd 12", "Total 12"),
        ("caf\ufffd", "caf\ufffd"),
        ("", ""),
    ],
)
def test_lines(raw: str, text: str) -> None:
    assert normalize(raw).text == text


def test_dropped_control_characters_are_counted() -> None:
    assert normalize("a\u0000b\u0001").num_dropped == 2
    assert normalize("plain").num_dropped == 0


def test_a_ligature_leads_back_to_its_glyph() -> None:
    found = normalize("de\ufb01ne")
    assert found.text == "define"
    assert [found.origin(index) for index in range(6)] == [0, 1, 2, 2, 3, 4]


def test_metadata_is_cleaned_and_cut() -> None:
    assert clean_text("  Annual\u0000 report\n2026 ", max_chars=10) == "Annual rep"
