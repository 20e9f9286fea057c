"""Fonts, colours and paragraph styles: one theme for each look a document can have."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import reportlab
from reportlab.lib.colors import Color, HexColor
from reportlab.lib.enums import TA_JUSTIFY, TA_RIGHT
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont

from examples.rendering.source import Source

FONT_FOLDER = Path(reportlab.__file__).parent / "fonts"

_FAMILIES = {
    "helvetica": ("Helvetica", "Helvetica-Bold", "Helvetica-Oblique"),
    "times": ("Times-Roman", "Times-Bold", "Times-Italic"),
    "vera": ("Vera", "Vera-Bold", "Vera-Italic"),
}


@dataclass(frozen=True)
class Theme:
    """How one document looks; sizes in points."""

    regular: str
    bold: str
    italic: str
    size: float
    accent: Color
    is_justified: bool

    @property
    def pale(self) -> Color:
        """A light tint of the accent, for table heads and boxes."""
        mix = [
            1 - (1 - part) * 0.13 for part in (self.accent.red, self.accent.green, self.accent.blue)
        ]
        return Color(*mix)

    def body(self, **changes: object) -> ParagraphStyle:
        """Running text; ``changes`` override any ParagraphStyle attribute."""
        attributes: dict[str, object] = {
            "fontName": self.regular,
            "fontSize": self.size,
            "leading": self.size * 1.42,
            "spaceAfter": self.size * 0.62,
            "allowWidows": 0,
            "allowOrphans": 0,
        }
        if self.is_justified:
            attributes["alignment"] = TA_JUSTIFY
        return ParagraphStyle("body", **(attributes | changes))

    def heading(self, level: int) -> ParagraphStyle:
        """Headings of level 1 to 3."""
        size = self.size * {1: 1.5, 2: 1.18, 3: 1.0}[level]
        return ParagraphStyle(
            f"heading{level}",
            fontName=self.italic if level == 3 else self.bold,
            fontSize=size,
            leading=size * 1.25,
            textColor=self.accent,
            spaceBefore=size * (1.0 if level == 1 else 0.8),
            spaceAfter=size * 0.45,
            keepWithNext=1,
        )

    def cell(self, *, is_head: bool = False, is_right: bool = False) -> ParagraphStyle:
        """Text of a table cell."""
        changes: dict[str, object] = {"alignment": TA_RIGHT} if is_right else {"alignment": 0}
        size = self.size * 0.9
        changes |= {"fontSize": size, "leading": size * 1.22, "spaceAfter": 0}
        if is_head:
            changes["fontName"] = self.bold
        return self.body(**changes)

    def caption(self, *, is_below: bool = False) -> ParagraphStyle:
        """A caption above a table, or below a figure."""
        return self.body(
            fontName=self.bold,
            fontSize=self.size * 0.9,
            alignment=0,
            spaceBefore=self.size * (0.2 if is_below else 0.5),
            spaceAfter=self.size * (1.1 if is_below else 0.35),
            keepWithNext=0 if is_below else 1,
        )


def theme_of(source: Source) -> Theme:
    """The theme that the front matter of a source asks for."""
    _register_vera()
    regular, bold, italic = _FAMILIES[source.get("font", "helvetica")]
    return Theme(
        regular=regular,
        bold=bold,
        italic=italic,
        size=float(source.get("size", "10")),
        accent=HexColor(source.get("accent", "#1d4f73")),
        is_justified=source.get("align") == "justify",
    )


@cache
def _register_vera() -> None:
    """Vera comes with reportlab and is embedded, so its umlauts are text whatever a viewer has."""
    files = {"Vera": "Vera.ttf", "Vera-Bold": "VeraBd.ttf", "Vera-Italic": "VeraIt.ttf"}
    for name, file in files.items():
        pdfmetrics.registerFont(TTFont(name, str(FONT_FOLDER / file)))
    pdfmetrics.registerFontFamily("Vera", "Vera", "Vera-Bold", "Vera-Italic", "Vera-Bold")
