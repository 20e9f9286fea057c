"""PDF by PyMuPDF: the one module that knows the library (AGPL), so that it can be replaced.

Only ever imported inside the parser child: the library may crash, hang or eat memory on a hostile
file, holds the GIL while it works and must not be called from two threads.
"""

from __future__ import annotations

import math
import sys
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import regex

from core.domain.pages import DocumentFacts
from core.errors import (
    CorruptDocument,
    DocumentTooLarge,
    NeedsPassword,
    PinciteError,
    UnsupportedDocument,
)
from ingest.normalize import clean_text
from ingest.parsing.base import Box, PageFault, ParseLimits, RawLine, RawPage, RawShape, RawSpan

# PyMuPDF 2 imports its layout models (onnxruntime, four threads, 55 MB) when it can; we use none
# of them, and a child that has only one thread may leave its network namespace.
sys.modules["pymupdf.layout"] = None  # type: ignore[assignment]
import pymupdf  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

# Not the defaults, which hide unmappable glyphs as plausible junk, keep ligatures and load every
# image. Vectors come along at almost no cost.
_TEXT_FLAGS = (
    pymupdf.TEXT_PRESERVE_WHITESPACE | pymupdf.TEXT_MEDIABOX_CLIP | pymupdf.TEXT_COLLECT_VECTORS
)
_MAGIC = b"%PDF-"
_MAGIC_WITHIN = 1024
_MAX_SHAPES = 4_000
_MAX_OUTLINE = 5_000
_MAX_METADATA_CHARS = 1_000
_MAX_COORDINATE = 1e6
_METADATA_KEYS = (
    *("title", "author", "subject", "keywords", "creator", "producer"),
    *("creationDate", "modDate", "format", "encryption"),
)
_NEARLY_WHITE = 0xF0
_PROOF_WIDTH_PX = 400
_LAM = "\u0644"
_ALEFS = "\u0622\u0623\u0625\u0627"
_SWAPPED = regex.compile(f"[{_ALEFS}]{_LAM}")

pymupdf.TOOLS.mupdf_display_errors(False)
pymupdf.TOOLS.mupdf_display_warnings(False)


class PdfDocument:
    """An open PDF file; a `SourceDocument`. Raises DocumentError when it cannot be opened."""

    def __init__(self, path: Path, limits: ParseLimits) -> None:
        check_is_pdf(path, limits)
        self._limits = limits
        pymupdf.TOOLS.reset_mupdf_warnings()
        try:
            with _library_calls():
                self._document = pymupdf.open(path, filetype="pdf")
        except PageFault as error:
            raise _why_it_does_not_open(path) from error
        try:
            self.page_count = self._count_pages()
        except PinciteError:
            self.close()
            raise

    def _count_pages(self) -> int:
        document = self._document
        if document.needs_pass and not document.authenticate(""):
            raise NeedsPassword(
                "this PDF can only be opened with a password",
                hint="save a copy without a password and add that",
            )
        try:
            with _library_calls():
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
            with _library_calls():
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
            with _library_calls():
                outline = self._outline()
        except PageFault:
            warnings.append("the outline is damaged")
        if self._document.is_repaired:
            warnings.append("the file is damaged and was repaired while reading")
        return DocumentFacts(
            page_count=self.page_count,
            title=metadata.get("title"),
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
        with _library_calls():
            page = self._document.load_page(number - 1)
            transform = _Transform(page)
            kind = "rawdict" if with_chars else "dict"
            found = page.get_text(kind, flags=_TEXT_FLAGS)["blocks"]
            if _has_lam_alef(found):
                found = page.get_text("rawdict", flags=_TEXT_FLAGS)["blocks"]
                _repair_lam_alef(found)
            proof = _Proof(page, transform) if _has_white_text(found) else None
            lines, num_chars = _read_lines(found, transform, proof, with_chars=with_chars)
            if num_chars > self._limits.max_page_chars:
                raise PageFault(f"more than {self._limits.max_page_chars} characters on the page")
            shapes = _read_shapes(found, transform)
            images: tuple[Box, ...] = ()
            if not any(not span.is_invisible for line in lines for span in line.spans):
                images = tuple(transform.box(image["bbox"]) for image in page.get_image_info())
            label = clean_text(page.get_label() or "", max_chars=20)
        return RawPage(
            number=number,
            width=transform.width,
            height=transform.height,
            rotation=transform.rotation,
            label=label or str(number),
            lines=lines,
            shapes=shapes,
            images=images,
            has_drawing=any(
                part["type"] == 3 and part["alpha"] and not _is_white(part["color"])
                for part in found
            ),
        )

    def render(self, number: int, width_px: int) -> bytes:
        """PNG of the page as displayed, `width_px` wide, or less where that would be more than
        `max_render_pixels`. Raises PageFault."""
        with _library_calls():
            page = self._document.load_page(number - 1)
            transform = _Transform(page)
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


def check_is_pdf(path: Path, limits: ParseLimits) -> None:
    """Raises DocumentError for a file that is empty, too large or not a PDF, by its own bytes."""
    size = path.stat().st_size
    if size == 0:
        raise CorruptDocument("the file is empty (0 bytes)", hint="upload it again")
    if size > limits.max_file_bytes:
        raise DocumentTooLarge(
            f"the file has {size} bytes; the limit is {limits.max_file_bytes}",
            hint="split it, or raise PINCITE_PARSER__MAX_FILE_BYTES",
        )
    with path.open("rb") as file:
        head = file.read(_MAGIC_WITHIN)
    if _MAGIC not in head:
        raise UnsupportedDocument(
            "this file is not a PDF", hint="only PDF files can be read; convert it first"
        )


def _why_it_does_not_open(path: Path) -> CorruptDocument | NeedsPassword:
    """Certificate encryption and damage fail alike; the bytes tell which."""
    with path.open("rb") as file:
        head = file.read(65_536)
        file.seek(max(0, path.stat().st_size - 65_536))
        sample = head + file.read()
    if b"/Encrypt" in sample and (b"Adobe.PubSec" in sample or b"adbe.pkcs7" in sample):
        return NeedsPassword(
            "this PDF is encrypted for the holder of a certificate",
            hint="save a copy without encryption and add that",
        )
    message = "this PDF is damaged and cannot be opened"
    if b"/Encrypt" in sample:
        message = "this PDF is encrypted, and damaged or encrypted in an unknown way"
    return CorruptDocument(message, hint="open it in a viewer and save or print it to a new PDF")


@contextmanager
def _library_calls() -> Iterator[None]:
    """The edge to the library: whatever it raises becomes PageFault, or MemoryError."""
    try:
        yield
    except (MemoryError, PageFault, PinciteError):
        raise
    except Exception as error:
        message = str(error).lower()
        if "alloc" in message or "out of memory" in message:
            raise MemoryError("the PDF library ran out of memory") from error
        raise PageFault(f"the PDF library failed ({type(error).__name__})") from error


class _Transform:
    """From the library's page coordinates (cropped, not rotated) to the page as displayed."""

    def __init__(self, page: Any) -> None:
        rect = page.rect
        self.width, self.height = float(rect.width), float(rect.height)
        self.rotation = int(page.rotation) % 360
        if not (0 < self.width < _MAX_COORDINATE and 0 < self.height < _MAX_COORDINATE):
            raise PageFault("the page has no area")
        matrix = page.rotation_matrix
        a, b, c, d, e, f = (float(value) for value in matrix)
        x0, y0 = float(rect.x0), float(rect.y0)
        self.box: Callable[[Box], Box]
        self.point: Callable[[float, float], tuple[float, float]]
        if self.rotation == 0 and (x0, y0) == (0, 0):
            self.box = _bounded
            self.point = lambda x, y: (x, y)
        else:
            self.point = lambda x, y: (a * x + c * y + e - x0, b * x + d * y + f - y0)
            self.box = self._turned

    def _turned(self, box: Box) -> Box:
        x0, y0 = self.point(box[0], box[1])
        x1, y1 = self.point(box[2], box[3])
        return _bounded((min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)))

    def angle(self, direction: tuple[float, float]) -> int:
        if direction == (1.0, 0.0):
            return self.rotation
        turn = round(math.degrees(math.atan2(direction[1], direction[0])) / 90) * 90
        return (turn + self.rotation) % 360


def _bounded(box: Box) -> Box:
    """The box itself, unless a hostile file made it infinite or not a number."""
    most = _MAX_COORDINATE
    x0, y0, x1, y1 = box
    if -most < x0 < most and -most < y0 < most and -most < x1 < most and -most < y1 < most:
        return box
    x0, y0, x1, y1 = (
        min(max(value, -_MAX_COORDINATE), _MAX_COORDINATE) if value == value else 0.0  # noqa: PLR0124
        for value in box
    )
    return (x0, y0, x1, y1)


class _Proof:
    """A small grey picture of the page, to see whether white text stands on anything darker.

    Fills, gradients and pictures behind a text are too many cases to reason about one by one.
    """

    def __init__(self, page: Any, transform: _Transform) -> None:
        self._zoom = _PROOF_WIDTH_PX / max(transform.width, transform.height)
        picture = page.get_pixmap(
            matrix=pymupdf.Matrix(self._zoom, self._zoom), colorspace=pymupdf.csGRAY, alpha=False
        )
        self._width, self._height, self._stride = picture.width, picture.height, picture.stride
        self._samples = bytes(picture.samples)

    def is_white(self, box: Box) -> bool:
        """Whether nothing but white shows inside `box` (points as displayed)."""
        x0, y0, x1, y1 = (value * self._zoom for value in box)
        left, right = max(0, math.floor(x0)), min(self._width, math.ceil(x1))
        rows = range(max(0, math.floor(y0)), min(self._height, math.ceil(y1)))
        return all(
            min(self._samples[row * self._stride + left : row * self._stride + right], default=255)
            > _NEARLY_WHITE
            for row in rows
        )


def _is_white(color: int) -> bool:
    return all((color >> shift) & 0xFF > _NEARLY_WHITE for shift in (0, 8, 16))


def _has_white_text(found: list[dict[str, Any]]) -> bool:
    return any(
        _is_white(span["color"]) and span["alpha"]
        for part in found
        if part["type"] == 0
        for line in part["lines"]
        for span in line["spans"]
    )


def _has_lam_alef(found: list[dict[str, Any]]) -> bool:
    """Whether a lam stands directly behind an alef: what a swapped ligature looks like."""
    return any(
        _SWAPPED.search(span.get("text", ""))
        for part in found
        if part["type"] == 0
        for line in part["lines"]
        for span in line["spans"]
    )


def _repair_lam_alef(found: list[dict[str, Any]]) -> None:
    """Put the two letters of the ligature lam-alef in their order, which MuPDF swaps.

    The alef that came out of a ligature has no width of its own; a real one has.
    """
    for part in found:
        for line in part.get("lines", ()):
            for span in line["spans"]:
                chars = span["chars"]
                for alef, lam in pairwise(chars):
                    x0, _, x1, _ = alef["bbox"]
                    if alef["c"] in _ALEFS and lam["c"] == _LAM and x1 - x0 < 0.01 * span["size"]:
                        alef["c"], lam["c"] = _LAM, alef["c"]
                        alef["bbox"] = lam["bbox"]


def _read_lines(
    found: list[dict[str, Any]],
    transform: _Transform,
    proof: _Proof | None,
    *,
    with_chars: bool,
) -> tuple[tuple[RawLine, ...], int]:
    lines: list[RawLine] = []
    num_chars = 0
    for part in found:
        if part["type"] != 0:
            continue
        for line in part["lines"]:
            spans = tuple(_read_span(span, transform, proof, with_chars) for span in line["spans"])
            num_chars += sum(len(span.text) for span in spans)
            if spans:
                # The baseline is that of the largest type: a line may begin with an exponent.
                largest = max(line["spans"], key=lambda span: span["size"])
                lines.append(
                    RawLine(
                        spans=spans,
                        box=transform.box(line["bbox"]),
                        origin=transform.point(*largest["origin"]),
                        angle=transform.angle(line["dir"]),
                        group=part["number"],
                    )
                )
    return tuple(lines), num_chars


def _read_span(
    span: dict[str, Any], transform: _Transform, proof: _Proof | None, with_chars: bool
) -> RawSpan:
    text: str | None = span.get("text")
    chars: tuple[Box, ...] | None = None
    if text is None:
        text = "".join(char["c"] for char in span["chars"])
    if with_chars:
        chars = tuple(
            transform.box(char["bbox"]) for char in span["chars"] for _ in range(len(char["c"]))
        )
    box = transform.box(span["bbox"])
    is_invisible = span["alpha"] == 0
    return RawSpan(
        text=text,
        box=box,
        size=span["size"],
        is_bold=bool(span["flags"] & pymupdf.TEXT_FONT_BOLD),
        is_invisible=is_invisible,
        is_camouflaged=proof is not None
        and not is_invisible
        and _is_white(span["color"])
        and proof.is_white(box),
        chars=chars,
    )


def _read_shapes(found: list[dict[str, Any]], transform: _Transform) -> tuple[RawShape, ...]:
    """Rectangles and straight lines; none where there are so many that they are a drawing."""
    shapes = [part for part in found if part["type"] == 3 and part["isrect"] and part["alpha"]]
    if len(shapes) > _MAX_SHAPES:
        return ()
    return tuple(
        RawShape(transform.box(part["bbox"]), part["color"], not part["stroked"]) for part in shapes
    )
