"""The library's text and shapes of a page, as raw lines and shapes."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import regex

from ingest.parsing.base import RawLine, RawShape, RawSpan
from ingest.parsing.pdf.library import pymupdf

if TYPE_CHECKING:
    from ingest.parsing.base import Box
    from ingest.parsing.pdf.geometry import Transform
    from ingest.parsing.pdf.visibility import Proof

_MAX_SHAPES = 4_000
_LEAST_SIZE = 2.0
_LAM = "\u0644"
_ALEFS = "\u0622\u0623\u0625\u0627"
_SWAPPED = regex.compile(f"[{_ALEFS}]{_LAM}")


def read_lines(
    found: list[dict[str, Any]],
    transform: Transform,
    proof: Proof | None,
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
    span: dict[str, Any], transform: Transform, proof: Proof | None, with_chars: bool
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
    return RawSpan(
        text=text,
        box=box,
        size=_size(span["size"], box, text),
        is_bold=bool(span["flags"] & pymupdf.TEXT_FONT_BOLD),
        hidden=proof.why_hidden(span, box) if proof is not None else None,
        chars=chars,
    )


def _size(size: float, box: Box, text: str) -> float:
    """The font size, or what it looks like where the font itself is drawn at another scale, as
    Type 3 fonts may be."""
    if size >= _LEAST_SIZE or not text:
        return float(size)
    wide, high = box[2] - box[0], box[3] - box[1]
    return float(max(size, min(wide, high) / 1.3, 1.6 * max(wide, high) / len(text), 0.1))


def read_shapes(found: list[dict[str, Any]], transform: Transform) -> tuple[RawShape, ...]:
    """Rectangles and straight lines; none where there are so many that they are a drawing."""
    shapes = [part for part in found if part["type"] == 3 and part["isrect"] and part["alpha"]]
    if len(shapes) > _MAX_SHAPES:
        return ()
    return tuple(
        RawShape(transform.box(part["bbox"]), part["color"], not part["stroked"]) for part in shapes
    )


def has_lam_alef(found: list[dict[str, Any]]) -> bool:
    """Whether a lam stands directly behind an alef: what a swapped ligature looks like."""
    return any(
        _SWAPPED.search(span.get("text", ""))
        for part in found
        if part["type"] == 0
        for line in part["lines"]
        for span in line["spans"]
    )


def repair_lam_alef(found: list[dict[str, Any]]) -> None:
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
