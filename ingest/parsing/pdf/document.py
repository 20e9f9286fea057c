"""An open PDF file, read page by page."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from core.domain.pages import DocumentFacts
from core.errors import CorruptDocument, DocumentTooLarge, NeedsPassword, PinciteError
from ingest.normalize import clean_text
from ingest.parsing.base import PageFault, RawPage
from ingest.parsing.pdf.geometry import Transform
from ingest.parsing.pdf.library import library_calls, pymupdf
from ingest.parsing.pdf.lines import has_lam_alef, read_lines, read_shapes, repair_lam_alef
from ingest.parsing.pdf.opening import check_is_pdf, why_it_does_not_open
from ingest.parsing.pdf.visibility import Proof, has_suspect_text, is_white
from ingest.parsing.titles import sensible_title

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from ingest.parsing.base import ParseLimits

# Not the defaults, which hide unmappable glyphs as plausible junk, keep ligatures and load every
# image. Vectors come along at almost no cost.
_TEXT_FLAGS = (
    pymupdf.TEXT_PRESERVE_WHITESPACE | pymupdf.TEXT_MEDIABOX_CLIP | pymupdf.TEXT_COLLECT_VECTORS
)
_MAX_OUTLINE = 5_000
_MAX_METADATA_CHARS = 1_000
_METADATA_KEYS = (
    *("title", "author", "subject", "keywords", "creator", "producer"),
    *("creationDate", "modDate", "format", "encryption"),
)


class PdfDocument:
    """An open PDF file; a `SourceDocument`. Raises DocumentError when it cannot be opened."""

    def __init__(self, path: Path, limits: ParseLimits) -> None:
        check_is_pdf(path, limits)
        self._limits = limits
        pymupdf.TOOLS.reset_mupdf_warnings()
        try:
            with library_calls():
                self._document = pymupdf.open(path, filetype="pdf")
        except PageFault as error:
            raise why_it_does_not_open(path) from error
        try:
            self.page_count = self._count_pages()
        except PinciteError:
            self.close()
            raise

    def _count_pages(self) -> int:
        document = self._document
        try:
            with library_calls():
                if document.needs_pass and not document.authenticate(""):
                    raise NeedsPassword(
                        "this PDF can only be opened with a password",
                        hint="save a copy without a password and add that",
                    )
                count = int(document.page_count)
        except PageFault as error:
            raise CorruptDocument(
                "the list of pages of this PDF is damaged",
                hint="open it in a viewer and save or print it to a new PDF",
            ) from error
        if count <= 0:
            raise CorruptDocument(
                "this PDF has no pages",
                hint="the file was cut off or damaged; get it again from its source",
            )
        if count > self._limits.max_pages:
            raise DocumentTooLarge(
                f"this PDF has {count} pages; the limit is {self._limits.max_pages}",
                hint="split it, or raise PINCITE_PARSER__MAX_PAGES",
            )
        return count

    def facts(self) -> DocumentFacts:
        """Metadata and outline. What of it is damaged is left out, with a warning."""
        warnings: list[str] = []
        metadata: dict[str, str] = {}
        outline: tuple[tuple[int, str, int], ...] = ()
        try:
            with library_calls():
                found = self._document.metadata or {}
                metadata = {
                    key: value
                    for key in _METADATA_KEYS
                    if (value := clean_text(found.get(key) or "", max_chars=_MAX_METADATA_CHARS))
                }
                if language := clean_text(self._document.language or "", max_chars=20):
                    metadata["language"] = language
        except PageFault:
            warnings.append("the metadata is damaged")
        try:
            with library_calls():
                outline = self._outline()
        except PageFault:
            warnings.append("the outline is damaged")
        if self._document.is_repaired:
            warnings.append("the file is damaged and was repaired while reading")
        return DocumentFacts(
            page_count=self.page_count,
            title=sensible_title(metadata.get("title", "")),
            language=metadata.get("language"),
            outline=outline,
            metadata=metadata,
            warnings=tuple(warnings),
        )

    def _outline(self) -> tuple[tuple[int, str, int], ...]:
        entries: list[tuple[int, str, int]] = []
        for level, raw_title, page, *_ in self._document.get_toc(simple=True)[:_MAX_OUTLINE]:
            title = clean_text(raw_title, max_chars=300)
            if title and 1 <= page <= self.page_count:
                entries.append((max(1, int(level)), title, int(page)))
        return tuple(entries)

    def read(self, number: int, *, with_chars: bool = False) -> RawPage:
        """Lines, shapes and, where the text leaves a doubt, pictures of page `number` (from 1).

        Raises PageFault; MemoryError when the library runs out of memory.
        """
        with library_calls():
            page = self._document.load_page(number - 1)
            transform = Transform(page)
            kind = "rawdict" if with_chars else "dict"
            found = page.get_text(kind, flags=_TEXT_FLAGS)["blocks"]
            if has_lam_alef(found):
                found = page.get_text("rawdict", flags=_TEXT_FLAGS)["blocks"]
                repair_lam_alef(found)
            proof = Proof(page, transform) if has_suspect_text(found) else None
            lines, num_chars = read_lines(found, transform, proof, with_chars=with_chars)
            if num_chars > self._limits.max_page_chars:
                raise PageFault(f"more than {self._limits.max_page_chars} characters on the page")
            shapes = read_shapes(found, transform)
            has_picture = False
            if all(span.hidden for line in lines for span in line.spans):
                has_picture = _has_drawing(found) or bool(page.get_image_info())
            label = clean_text(page.get_label() or "", max_chars=20)
        return RawPage(
            number=number,
            width=transform.width,
            height=transform.height,
            rotation=transform.rotation,
            label=label or str(number),
            lines=lines,
            shapes=shapes,
            has_picture=has_picture,
        )

    def render(self, number: int, width_px: int) -> bytes:
        """PNG of the page as displayed, `width_px` wide, or less where that would be more than
        `max_render_pixels`. Raises PageFault."""
        with library_calls():
            page = self._document.load_page(number - 1)
            transform = Transform(page)
            zoom = width_px / transform.width
            most = math.sqrt(self._limits.max_render_pixels / (transform.width * transform.height))
            zoom = min(zoom, most)
            picture = page.get_pixmap(matrix=pymupdf.Matrix(zoom, zoom), alpha=False)
            return bytes(picture.tobytes("png"))

    def warnings(self) -> tuple[str, ...]:
        """What the library grumbled about since the file was opened: a few short lines."""
        lines = dict.fromkeys(str(pymupdf.TOOLS.mupdf_warnings()).splitlines())
        return tuple(clean_text(line, max_chars=160) for line in list(lines)[:5])

    def close(self) -> None:
        self._document.close()


def _has_drawing(found: list[dict[str, Any]]) -> bool:
    return any(
        part["type"] == 3 and part["alpha"] and not is_white(part["color"]) for part in found
    )
