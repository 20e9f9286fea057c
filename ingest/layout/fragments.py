"""Raw lines to fragments: hidden text out, text normalised, coordinates as the text runs.

A fragment is what the file draws along one baseline without a wide gap. Layout rules are written
for text that runs to the right; a page whose text runs another way (a table set sideways, vertical
Chinese, Arabic) is turned or mirrored for the analysis, while rectangles stay those of the page as
displayed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import regex

from ingest.normalize import Normalized, normalize

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from core.domain.pages import Rect
    from ingest.parsing.base import Box, RawLine, RawPage, RawSpan

_SAME_BASE = 0.3  # times the font size
_TINY_SIZE = 2.0  # points: nobody reads it on paper
_RTL = regex.compile(r"[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}]")
# MuPDF puts the full stop of a right-to-left line in front of it.
_STOP_BEFORE_RTL = regex.compile(rf"[.,:;!?،؛؟۔]\s?{_RTL.pattern}")
_LETTER = regex.compile(r"\p{L}")


@dataclass(slots=True)
class Fragment:
    """`box` and `base` (the baseline) are points in the reading frame; `rect` is 0..1 of
    the page as displayed. `spans` are those that are seen, whose texts joined are `raw`."""

    raw: str
    normal: Normalized
    spans: tuple[RawSpan, ...]
    rect: Rect
    box: Box
    base: float
    size: float
    is_bold: bool
    group: int
    angle: int

    @property
    def text(self) -> str:
        return self.normal.text

    def char_boxes(self) -> list[Box]:
        """The displayed box of each code point of `raw`. Raises ValueError on a page that was read
        without them."""
        boxes = [box for span in self.spans for box in span.chars or ()]
        if len(boxes) != len(self.raw):
            raise ValueError("the page was read without the boxes of its characters")
        return boxes


@dataclass(slots=True)
class FragmentSet:
    """All fragments of a page in the order of the file. `angle` is that of most of its text."""

    fragments: list[Fragment]
    angle: int
    width: float  # of the reading frame
    height: float
    is_rtl: bool
    raws: list[str] = field(default_factory=list)  # every line as the file has it
    hidden: Counter[str] = field(default_factory=Counter)
    num_dropped: int = 0


def make_fragments(page: RawPage) -> FragmentSet:
    """Fragments of everything a reader of the page can see."""
    angle = _main_angle(page.lines)
    turned = angle in (90, 270)
    result = FragmentSet(
        fragments=[],
        angle=angle,
        width=page.height if turned else page.width,
        height=page.width if turned else page.height,
        is_rtl=False,
    )
    num_rtl = num_letters = 0
    for line in page.lines:
        spans = tuple(_seen(line, page, result.hidden))
        raw = "".join(span.text for span in spans)
        result.raws.append(raw)
        normal = normalize(raw)
        result.num_dropped += normal.num_dropped
        if not normal.text:
            continue
        if _STOP_BEFORE_RTL.match(normal.text):
            normal = _stop_last(normal)
        result.fragments.append(_fragment(page, line, spans, raw, normal, angle))
        if normal.text.isascii():
            num_letters += len(normal.text)
        else:
            num_rtl += len(_RTL.findall(normal.text))
            num_letters += len(_LETTER.findall(normal.text))
    if num_rtl * 2 > num_letters:
        _mirror(result)
    return result


def _stop_last(normal: Normalized) -> Normalized:
    """The line with its first character at the end, and each still with its origin."""
    order = [*range(1, len(normal.text)), 0]
    if normal.text[1] == " ":
        order.pop(0)
    text = "".join(normal.text[index] for index in order)
    return Normalized(text, [normal.origin(index) for index in order], normal.num_dropped)


def _mirror(result: FragmentSet) -> None:
    """Right-to-left pages are analysed in a mirror, where they start at the left as others do."""
    result.is_rtl = True
    for fragment in result.fragments:
        x0, y0, x1, y1 = fragment.box
        fragment.box = (result.width - x1, y0, result.width - x0, y1)


def frame_box(box: Box, page: RawPage, result: FragmentSet) -> Box:
    """Any displayed box in the frame of these fragments."""
    x0, y0, x1, y1 = to_frame(box, page, result.angle)
    return (result.width - x1, y0, result.width - x0, y1) if result.is_rtl else (x0, y0, x1, y1)


def to_frame(box: Box, page: RawPage, angle: int) -> Box:
    """A displayed box in the frame in which text of that angle runs to the right."""
    x0, y0, x1, y1 = box
    if angle == 0:
        return box
    if angle == 90:
        return (y0, page.width - x1, y1, page.width - x0)
    if angle == 180:
        return (page.width - x1, page.height - y1, page.width - x0, page.height - y0)
    return (page.height - y1, x0, page.height - y0, x1)


def to_rect(box: Box, page: RawPage) -> Rect:
    """0..1 of the page as displayed, clipped to it, to five decimals (0.04 mm on A2)."""
    x0, y0, x1, y1 = box
    width, height = page.width, page.height
    return (
        round(min(max(x0 / width, 0.0), 1.0), 5),
        round(min(max(y0 / height, 0.0), 1.0), 5),
        round(min(max(x1 / width, 0.0), 1.0), 5),
        round(min(max(y1 / height, 0.0), 1.0), 5),
    )


def union(boxes: Sequence[Box]) -> Box:
    """The smallest box around all (at least one)."""
    return (
        min(box[0] for box in boxes),
        min(box[1] for box in boxes),
        max(box[2] for box in boxes),
        max(box[3] for box in boxes),
    )


def on_one_base(left: Fragment, right: Fragment) -> bool:
    return abs(left.base - right.base) <= _SAME_BASE * min(left.size, right.size)


def _main_angle(lines: Sequence[RawLine]) -> int:
    if all(line.angle == 0 for line in lines):
        return 0
    weights: Counter[int] = Counter()
    for line in lines:
        weights[line.angle] += sum(len(span.text) for span in line.spans)
    return weights.most_common(1)[0][0]


def _seen(line: RawLine, page: RawPage, hidden: Counter[str]) -> Iterator[RawSpan]:
    """Spans that are part of the text; the others are counted by why they are not."""
    for span in line.spans:
        reason = _why_hidden(span, page)
        if reason is None:
            yield span
        elif span.text.strip():
            hidden[reason] += 1


def _why_hidden(span: RawSpan, page: RawPage) -> str | None:
    if span.hidden is not None:
        return span.hidden
    if span.size < _TINY_SIZE and page.height > 100 * _TINY_SIZE:
        return "tiny"
    x0, y0, x1, y1 = span.box
    if x1 < 0 or y1 < 0 or x0 > page.width or y0 > page.height:
        return "off the page"
    return None


def _fragment(
    page: RawPage,
    line: RawLine,
    spans: tuple[RawSpan, ...],
    raw: str,
    normal: Normalized,
    angle: int,
) -> Fragment:
    shown = line.box if len(spans) == len(line.spans) else union([span.box for span in spans])
    box = to_frame(shown, page, angle)
    # Blanks at the ends are not part of what is seen, and would hide the gap to the next cell.
    blank_before, blank_after = len(raw) - len(raw.lstrip()), len(raw) - len(raw.rstrip())
    if blank_before + blank_after > 1 and line.angle == angle:
        step = (box[2] - box[0]) / len(raw)
        box = (box[0] + step * blank_before, box[1], box[2] - step * blank_after, box[3])
    x, y = line.origin
    biggest = max(spans, key=lambda span: len(span.text))
    return Fragment(
        raw=raw,
        normal=normal,
        spans=spans,
        rect=to_rect(shown, page),
        box=box,
        base=to_frame((x, y, x, y), page, angle)[1],
        size=biggest.size or 1.0,
        is_bold=_is_bold(spans),
        group=line.group,
        angle=line.angle,
    )


def _is_bold(spans: tuple[RawSpan, ...]) -> bool:
    if len(spans) == 1:
        return spans[0].is_bold
    bold = sum(len(span.text) for span in spans if span.is_bold)
    return bold * 5 >= 4 * sum(len(span.text) for span in spans)
