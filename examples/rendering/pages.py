"""Builds one PDF: frames, running heads, folios, outline, page labels.

Every document is built twice: the first build finds how many pages there are and on which page
each heading falls, the second one prints them. A build reads no clock, so equal sources give equal
bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

from reportlab.lib.pagesizes import A4
from reportlab.platypus import (
    BaseDocTemplate,
    Frame,
    FrameBreak,
    NextPageTemplate,
    PageTemplate,
    Paragraph,
)

from examples.rendering.artwork import draw_mark
from examples.rendering.flow import ContentsRow, Flow, flowables, inline
from examples.rendering.source import Block, Heading, Source
from examples.rendering.theme import Theme, theme_of

_MARGIN = 62.0
_TOP, _BOTTOM = 74.0, 66.0
_GUTTER = 18.0
_COMPANY = "Tarnbeck Pumps & Water Ltd"


@dataclass
class _Build:
    """What one build learns for the next one."""

    num_pages: int = 0
    contents: list[ContentsRow] = field(default_factory=list)


def render_pages(source: Source) -> bytes:
    """The finished PDF of a source with a text layer."""
    theme = theme_of(source)
    first = _Build(contents=[(b.level, b.text, "0") for b in _listed(source.blocks)])
    _, learnt = _build(source, theme, first)
    data, _ = _build(source, theme, learnt)
    return data


def _listed(blocks: Sequence[Block]) -> list[Heading]:
    return [
        block
        for block in blocks
        if isinstance(block, Heading) and _is_listed(block.level, block.text)
    ]


def _is_listed(level: int, text: str) -> bool:
    """Whether a heading stands in the table of contents."""
    return level <= 2 and text not in {"Contents", "Inhalt"}


def _build(source: Source, theme: Theme, known: _Build) -> tuple[bytes, _Build]:
    size = (A4[1], A4[0]) if source.get("layout") == "landscape" else A4
    buffer = BytesIO()
    document = BaseDocTemplate(
        buffer,
        pagesize=size,
        rotation=90 if source.get("layout") == "landscape" else 0,
        invariant=1,
        title=source.get("title"),
        author=source.get("author", _COMPANY),
        subject=source.get("number"),
        keywords=source.get("keywords"),
        lang=source.get("language", "en-GB"),
        creator="Tarnbeck document office",
    )
    learnt = _Build()
    decorate = _Decorator(source, theme, size, known.num_pages)
    document.addPageTemplates(_templates(source, size, decorate))

    def note_heading(flowable: Any) -> None:
        outline = getattr(flowable, "outline", None)
        if outline is None:
            return
        level, text = outline
        key = f"heading-{len(learnt.contents)}-{document.page}"
        document.canv.bookmarkPage(key)
        document.canv.addOutlineEntry(text, key, level=min(level, 2) - 1, closed=level > 1)
        if _is_listed(level, text):
            learnt.contents.append((level, text, decorate.label(document.page)))

    document.afterFlowable = note_heading
    document.build(_story(source, theme, size, known))
    learnt.num_pages = document.page
    return buffer.getvalue(), learnt


def _story(source: Source, theme: Theme, size: tuple[float, float], known: _Build) -> Flow:
    width = size[0] - 2 * _MARGIN
    flow: Flow = [NextPageTemplate("later")]
    if source.get("layout") != "columns":
        flow += _title(source, theme)
        return flow + flowables(source.blocks, theme, width, known.contents)
    start = next(at for at, block in enumerate(source.blocks) if isinstance(block, Heading))
    flow += _title(source, theme)
    flow += flowables(source.blocks[:start], theme, width)
    flow.append(FrameBreak())
    return flow + flowables(source.blocks[start:], theme, (width - _GUTTER) / 2)


def _title(source: Source, theme: Theme) -> Flow:
    if source.get("heading") == "none":
        return []
    size = theme.size * 2.1
    style = theme.heading(1).clone("title", fontSize=size, leading=size * 1.15, keepWithNext=0)
    flow: Flow = [Paragraph(inline(source.get("title")), style)]
    if source.get("subtitle"):
        line = theme.body(textColor=theme.accent, fontSize=theme.size * 1.15, spaceAfter=theme.size)
        flow.append(Paragraph(inline(source.get("subtitle")), line))
    return flow


def _templates(source: Source, size: tuple[float, float], decorate: "_Decorator") -> list[Any]:
    width, height = size[0] - 2 * _MARGIN, size[1] - _TOP - _BOTTOM
    bare = {"leftPadding": 0, "rightPadding": 0, "topPadding": 0, "bottomPadding": 0}
    if source.get("layout") != "columns":
        frame = Frame(_MARGIN, _BOTTOM, width, height, **bare)
        first, later = [frame], [Frame(_MARGIN, _BOTTOM, width, height, **bare)]
    else:
        top = float(source.get("title_height", "190"))
        column = (width - _GUTTER) / 2
        lefts = (_MARGIN, _MARGIN + column + _GUTTER)
        first = [Frame(_MARGIN, _BOTTOM + height - top, width, top, **bare)]
        first += [Frame(left, _BOTTOM, column, height - top - 6, **bare) for left in lefts]
        later = [Frame(left, _BOTTOM, column, height, **bare) for left in lefts]
    return [
        PageTemplate(id="first", frames=first, onPage=decorate),
        PageTemplate(id="later", frames=later, onPage=decorate),
    ]


class _Decorator:
    """Draws what is outside the frames, and turns the page where the sheet lies sideways."""

    def __init__(
        self, source: Source, theme: Theme, size: tuple[float, float], num_pages: int
    ) -> None:
        self._source = source
        self._theme = theme
        self._size = size
        self._num_pages = num_pages
        self._num_roman = int(source.get("roman_pages", "0"))

    def label(self, page: int) -> str:
        """The printed number of a page: i, ii, ... in the front matter, then 1, 2, ..."""
        if page <= self._num_roman:
            return ("i", "ii", "iii", "iv")[page - 1]
        return str(page - self._num_roman)

    def __call__(self, canvas: Any, document: Any) -> None:
        page = document.page
        if self._source.get("layout") == "landscape":
            # with /Rotate 90 the sheet is stored upright; turning the drawing the other way
            # makes it read level in a viewer
            canvas.translate(self._size[1], 0)
            canvas.rotate(90)
        if self._num_roman and page == 1:
            canvas.addPageLabel(0, style="ROMAN_LOWER", start=1)
            canvas.addPageLabel(self._num_roman, style="ARABIC", start=1)
        canvas.saveState()
        self._draw_head(canvas)
        self._draw_foot(canvas, page)
        canvas.restoreState()

    def _draw_head(self, canvas: Any) -> None:
        width, height = self._size
        y = height - 48
        draw_mark(canvas, _MARGIN + 7, y + 4, self._theme.accent)
        canvas.setFillColor(self._theme.accent)
        canvas.setFont(self._theme.bold, 8.5)
        canvas.drawString(_MARGIN + 19, y + 1, self._source.get("house", _COMPANY))
        canvas.setFont(self._theme.regular, 8.5)
        canvas.drawRightString(width - _MARGIN, y + 1, self._source.get("running_head"))
        canvas.setStrokeColor(self._theme.accent)
        canvas.setLineWidth(0.6)
        canvas.line(_MARGIN, y - 8, width - _MARGIN, y - 8)

    def _draw_foot(self, canvas: Any, page: int) -> None:
        width = self._size[0]
        canvas.setFillColor(self._theme.accent)
        canvas.setFont(self._theme.regular, 8)
        canvas.drawString(_MARGIN, 40, self._source.get("footer"))
        word = self._source.get("page_word", "Page {page} of {pages}")
        folio = word.format(page=self.label(page), pages=self._num_pages)
        canvas.drawRightString(width - _MARGIN, 40, folio)
