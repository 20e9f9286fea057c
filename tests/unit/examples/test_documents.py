"""The rendered documents are what the sample bucket says they are."""

import hashlib
import subprocess
import sys
from pathlib import Path

import pymupdf
import pytest

from examples.render import render_all
from tests.unit.examples.conftest import ROOT, PageText

NUM_PAGES = {
    "handbook/employee-handbook.pdf": 10,
    "handbook/safety-report-2025.pdf": 5,
    "handbook/travel-and-expenses-policy.pdf": 5,
    "legal/price-list-2026.pdf": 4,
    "legal/supply-contract.pdf": 8,
    "plant/acceptance-test-record.pdf": 3,
    "plant/betriebsanleitung-dosierstation.pdf": 6,
    "plant/instrument-schedule.pdf": 3,
    "plant/maintenance-manual.pdf": 12,
    "plant/membrane-fouling-report.pdf": 6,
}
SCAN = "plant/acceptance-test-record.pdf"
WITH_TEXT = sorted(set(NUM_PAGES) - {SCAN})


def test_the_bucket_holds_exactly_these_documents(bucket: Path) -> None:
    found = {}
    for path in bucket.rglob("*.pdf"):
        with pymupdf.open(path) as document:
            found[path.relative_to(bucket).as_posix()] = document.page_count
    assert found == NUM_PAGES


def test_rendering_twice_gives_the_same_bytes(bucket: Path, tmp_path: Path) -> None:
    def digests(folder: Path) -> dict[str, str]:
        return {
            path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in folder.rglob("*.pdf")
        }

    written = render_all(tmp_path)

    assert written == sorted(tmp_path.rglob("*.pdf"))
    assert digests(tmp_path) == digests(bucket)


def test_the_script_gives_the_same_bytes_in_a_fresh_process(bucket: Path, tmp_path: Path) -> None:
    script = ROOT / "examples" / "render.py"
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(done.stdout.splitlines()) == len(NUM_PAGES)
    for key in NUM_PAGES:
        assert (tmp_path / key).read_bytes() == (bucket / key).read_bytes(), key


def test_the_script_without_a_folder_says_how_it_is_used() -> None:
    script = ROOT / "examples" / "render.py"
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "OUT_DIR" in done.stderr


def test_the_scan_has_pictures_and_no_text(bucket: Path) -> None:
    with pymupdf.open(bucket / SCAN) as document:
        for page in document:
            assert page.get_text().strip() == ""
            assert len(page.get_images()) == 1


@pytest.mark.parametrize("key", WITH_TEXT)
def test_every_page_is_dense_and_has_only_known_glyphs(key: str, pages: PageText) -> None:
    for num in range(1, NUM_PAGES[key] + 1):
        text = pages[key, num]
        assert len(text) > 600, (key, num)
        # reportlab draws a black square for a character that the font lacks
        assert not {"\ufffd", "■"} & set(text), (key, num)


@pytest.mark.parametrize("key", WITH_TEXT)
def test_title_and_outline_are_there(key: str, bucket: Path, pages: PageText) -> None:
    with pymupdf.open(bucket / key) as document:
        assert document.metadata["title"]
        outline = document.get_toc()
    assert len(outline) >= 4
    for _, heading, page in outline:
        assert heading in pages[key, page]


def test_running_heads_and_folios_are_on_every_page(pages: PageText) -> None:
    for num in range(1, 11):
        text = pages["handbook/employee-handbook.pdf", num]
        assert "Employee Handbook · HR-001 Issue 9" in text
        assert f"Page {num} of 10" in text


def test_only_the_schedule_is_rotated_and_reads_level(bucket: Path) -> None:
    for key in NUM_PAGES:
        with pymupdf.open(bucket / key) as document:
            rotations = {page.rotation for page in document}
        assert rotations == ({90} if key == "plant/instrument-schedule.pdf" else {0}), key
    with pymupdf.open(bucket / "plant/instrument-schedule.pdf") as document:
        for page in document:
            assert page.mediabox.width < page.mediabox.height
            assert page.rect.width > page.rect.height
            # text drawn upwards on the stored sheet runs to the right on the displayed one
            directions = {
                tuple(round(part) for part in line["dir"])
                for block in page.get_text("dict")["blocks"]
                for line in block.get("lines", ())
            }
            assert directions == {(0, -1)}
            assert page.search_for("Tarnbeck Pumps & Water Ltd")


def test_the_manual_has_printed_page_numbers_of_its_own(bucket: Path) -> None:
    with pymupdf.open(bucket / "plant/maintenance-manual.pdf") as document:
        labels = [page.get_label() for page in document]
    assert labels == ["i", "ii", *(str(num) for num in range(1, 11))]


def test_the_contents_of_the_manual_name_the_printed_pages(bucket: Path, pages: PageText) -> None:
    key = "plant/maintenance-manual.pdf"
    with pymupdf.open(bucket / key) as document:
        listed = [
            f"{heading} {document[page - 1].get_label()}"
            for _, heading, page in document.get_toc()
            if heading != "Contents"
        ]
    assert len(listed) > 30
    for line in listed:
        assert line in pages[key, 2]


def test_the_german_text_has_real_umlauts(bucket: Path, pages: PageText) -> None:
    key = "plant/betriebsanleitung-dosierstation.pdf"
    text = " ".join(pages[key, num] for num in range(1, 7))
    assert set("äöüÄÖß") <= set(text)
    assert "Vor jedem Öffnen einer Verschraubung" in text
    with pymupdf.open(bucket / key) as document:
        # font list rows: xref, file extension, kind, name, ...; "n/a" is a font not embedded
        assert all(font[1] == "ttf" for font in document.get_page_fonts(0) if "Vera" in font[3])
        assert any("Vera" in font[3] for font in document.get_page_fonts(0))


def test_columns_are_read_one_after_the_other(pages: PageText) -> None:
    text = pages["plant/membrane-fouling-report.pdf", 1]
    order = [
        text.index(words)
        for words in ("Abstract.", "1 Introduction", "revises that advice", "2 Plant and methods")
    ]
    assert order == sorted(order)


def test_table_rows_come_cell_by_cell(pages: PageText) -> None:
    row = "Vehicles and fork-lift trucks 41 8 12 61"
    assert row in pages["handbook/safety-report-2025.pdf", 2]
    wrapped = "17 Feb. Rotherham, bay 2 Crane hook opened under a casing of 410 kg Latches on all"
    assert wrapped in pages["handbook/safety-report-2025.pdf", 3]
