"""Turns parsed blocks into reportlab flowables."""

import re
from collections.abc import Sequence
from html import escape
from typing import Any

from reportlab.lib.colors import HexColor
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.platypus import CondPageBreak, Paragraph, Spacer, Table
from reportlab.platypus import PageBreak as FlowPageBreak

from examples.rendering.artwork import draw_art
from examples.rendering.chart import draw_chart
from examples.rendering.source import (
    Block,
    Callout,
    Clause,
    Contents,
    Fence,
    Grid,
    Heading,
    Items,
    PageBreak,
    Para,
    SourceError,
)
from examples.rendering.theme import Theme

Flow = list[Any]  # reportlab ships no types
ContentsRow = tuple[int, str, str]  # level, heading, printed page label

_CAPTION = re.compile(r"(?:Table|Tabelle|Figure|Bild|Schedule) [0-9A-Z.]+ ")
_RULE = HexColor("#9aa5ad")
_CELL_PADDING = 5.0
_WARNING = HexColor("#a8321e")


def flowables(
    blocks: Sequence[Block], theme: Theme, width: float, contents: Sequence[ContentsRow] = ()
) -> Flow:
    """The flowables of ``blocks`` for a frame of ``width`` points, in reading order.

    ``contents`` are the rows of the table of contents, known after a first build of the document.
    """
    flow: Flow = []
    for block in blocks:
        flow.extend(_flow_of(block, theme, width, contents))
    return flow


def _flow_of(block: Block, theme: Theme, width: float, contents: Sequence[ContentsRow]) -> Flow:
    flow: Flow = []
    match block:
        case Heading(level, text):
            heading = Paragraph(inline(text), theme.heading(level))
            heading.outline = (level, text)
            flow = [heading]
        case Para(text):
            style = theme.caption(is_below=True) if _CAPTION.match(text) else theme.body()
            flow = [Paragraph(inline(text), style)]
        case Clause(number, text, depth):
            flow = [_clause(number, text, depth, theme)]
        case Items(items, is_ordered):
            flow = _items(items, is_ordered, theme)
        case Callout(label, text):
            flow = [_callout(label, text, theme, width)]
        case Grid():
            flow = _grid(block, theme, width)
        case Contents():
            flow = _contents(contents, theme, width)
        case PageBreak():
            flow = [FlowPageBreak()]
        case Fence(kind, lines):
            flow = _fence(kind, lines, theme, width)
    return flow


def inline(text: str) -> str:
    """Escapes text for a reportlab paragraph and turns the two inline marks into tags."""
    marked = escape(text, quote=False)
    marked = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", marked)
    return re.sub(r"\*(.+?)\*", r"<i>\1</i>", marked)


def _clause(number: str, text: str, depth: int, theme: Theme) -> Any:
    left, bullet = (34.0, 0.0) if depth == 1 else (58.0, 34.0)
    style = theme.body(leftIndent=left, bulletIndent=bullet, bulletFontName=theme.regular)
    style.bulletFontSize = theme.size
    return Paragraph(inline(text), style, bulletText=number)


def _items(items: Sequence[str], is_ordered: bool, theme: Theme) -> Flow:
    style = theme.body(leftIndent=18, bulletIndent=5, spaceAfter=theme.size * 0.28)
    style.bulletFontName, style.bulletFontSize = theme.regular, theme.size
    flow: Flow = [
        Paragraph(inline(item), style, bulletText=f"{num}." if is_ordered else "•")
        for num, item in enumerate(items, start=1)
    ]
    flow.append(Spacer(1, theme.size * 0.4))
    return flow


def _callout(label: str, text: str, theme: Theme, width: float) -> Any:
    colour = _WARNING if label.lower() in {"warning", "gefahr", "warnung"} else theme.accent
    style = theme.cell()
    body = Paragraph(f"<b>{inline(label)}.</b> {inline(text)}", style)
    box = Table([[body]], colWidths=[width - 6])
    box.setStyle(
        [
            ("BACKGROUND", (0, 0), (-1, -1), theme.pale),
            ("LINEBEFORE", (0, 0), (0, -1), 3, colour),
            ("LEFTPADDING", (0, 0), (-1, -1), 9),
            ("TOPPADDING", (0, 0), (-1, -1), 5),
            ("BOTTOMPADDING", (0, 0), (-1, -1), 6),
        ]
    )
    box.spaceBefore, box.spaceAfter = theme.size * 0.4, theme.size * 0.9
    return box


def _grid(grid: Grid, theme: Theme, width: float) -> Flow:
    """A ruled table, drawn row by row, so that the text of a row stays together in the file."""
    total = sum(grid.weights)
    widths = [width * part / total for part in grid.weights]
    _check_words(grid, theme, widths)
    rows = [
        [inline(cell) for cell in row]
        for row in (*([grid.header] if grid.header else []), *grid.rows)
    ]
    num_head = 1 if grid.header else 0
    cells = [
        [
            Paragraph(text, theme.cell(is_head=at < num_head, is_right=is_right))
            for text, is_right in zip(row, grid.is_right, strict=True)
        ]
        for at, row in enumerate(rows)
    ]
    table = Table(cells, colWidths=widths, repeatRows=num_head)
    table.setStyle(
        [
            ("VALIGN", (0, 0), (-1, -1), "TOP"),
            ("LINEBELOW", (0, 0), (-1, -1), 0.4, _RULE),
            ("LINEABOVE", (0, 0), (-1, 0), 0.9, theme.accent),
            ("LINEBELOW", (0, -1), (-1, -1), 0.9, theme.accent),
            ("LEFTPADDING", (0, 0), (-1, -1), _CELL_PADDING),
            ("RIGHTPADDING", (0, 0), (-1, -1), _CELL_PADDING),
            ("TOPPADDING", (0, 0), (-1, -1), 2.2),
            ("BOTTOMPADDING", (0, 0), (-1, -1), 3.2),
            *([("BACKGROUND", (0, 0), (-1, 0), theme.pale)] if num_head else []),
        ]
    )
    table.spaceAfter = theme.size * 1.1
    if not grid.caption:
        return [table]
    caption = Paragraph(inline(grid.caption), theme.caption())
    if len(rows) <= 16:
        return [caption, table]  # the caption keeps a short table whole and with it
    caption.keepWithNext = 0
    return [CondPageBreak(120), caption, table]  # a long one may split over pages


def _check_words(grid: Grid, theme: Theme, widths: Sequence[float]) -> None:
    """Raises SourceError for a word wider than its column, which would be broken anywhere."""
    for is_head, row in ((True, grid.header), *((False, row) for row in grid.rows)):
        style = theme.cell(is_head=is_head)
        for cell, width in zip(row, widths, strict=False):
            for word in cell.split():
                room = width - 2 * _CELL_PADDING
                if stringWidth(word, style.fontName, style.fontSize) > room:
                    raise SourceError(f"{grid.caption}: the word {word} does not fit its column")


def _contents(rows: Sequence[ContentsRow], theme: Theme, width: float) -> Flow:
    flow: Flow = []
    for level, text, label in rows:
        style = theme.cell(is_head=level == 1)
        right = theme.cell(is_head=level == 1, is_right=True)
        indent = "&nbsp;" * (6 * (level - 1))
        line = Table(
            [[Paragraph(indent + inline(text), style), Paragraph(label, right)]],
            colWidths=[width - 50, 50],
        )
        line.setStyle(
            [("TOPPADDING", (0, 0), (-1, -1), 1.5), ("BOTTOMPADDING", (0, 0), (-1, -1), 1.5)]
        )
        flow.append(line)
    return flow


def _fence(kind: str, lines: Sequence[str], theme: Theme, width: float) -> Flow:
    if kind == "facts":
        return _facts(lines, theme, width)
    if kind == "chart":
        return [_kept(draw_chart(lines, theme, width))]
    if kind == "art":
        return [_kept(draw_art(lines[0].strip(), theme, width))]
    raise SourceError(f"a ~~~ block of unknown kind: {kind}")


def _kept(drawing: Any) -> Any:
    """A drawing stays on the page of the caption below it."""
    box = Table([[drawing]])
    box.setStyle([("LEFTPADDING", (0, 0), (-1, -1), 0), ("RIGHTPADDING", (0, 0), (-1, -1), 0)])
    box.keepWithNext = 1
    return box


def _facts(lines: Sequence[str], theme: Theme, width: float) -> Flow:
    """Label and value pairs without rules: document control, memo heads, signature blocks."""
    pairs = [line.partition(":") for line in lines if line.strip()]
    cells = [
        [
            Paragraph(inline(label.strip()), theme.cell(is_head=True)),
            Paragraph(inline(value.strip()) or "&nbsp;", theme.cell()),
        ]
        for label, _, value in pairs
    ]
    table = Table(cells, colWidths=[width * 0.27, width * 0.73])
    table.setStyle(
        [
            ("VALIGN", (0, 0), (-1, -1), "TOP"),
            ("LEFTPADDING", (0, 0), (-1, -1), 0),
            ("TOPPADDING", (0, 0), (-1, -1), 1.6),
            ("BOTTOMPADDING", (0, 0), (-1, -1), 2.4),
            ("LINEBELOW", (0, 0), (-1, -1), 0.3, _RULE),
        ]
    )
    table.spaceAfter = theme.size * 1.2
    return [table]
