"""The company mark and the few line drawings that documents show."""

import math
from typing import Any

from reportlab.graphics.shapes import Circle, Drawing, Group, Line, Path, Polygon, Rect, String
from reportlab.lib.colors import HexColor, white

from examples.rendering.source import SourceError
from examples.rendering.theme import Theme

_STEEL = HexColor("#dfe5e9")
_LINE = HexColor("#33424d")


def draw_mark(canvas: Any, x: float, y: float, colour: Any, size: float = 13) -> None:
    """The mark: four impeller vanes in a ring, its centre at (x, y)."""
    canvas.saveState()
    canvas.translate(x, y)
    canvas.setStrokeColor(colour)
    canvas.setFillColor(colour)
    canvas.setLineWidth(size * 0.11)
    canvas.circle(0, 0, size / 2, stroke=1, fill=0)
    for _ in range(4):
        canvas.rotate(90)
        vane = canvas.beginPath()
        vane.moveTo(size * 0.08, 0)
        vane.curveTo(size * 0.1, size * 0.25, size * 0.3, size * 0.3, size * 0.36, size * 0.12)
        vane.curveTo(size * 0.3, size * 0.16, size * 0.2, size * 0.1, size * 0.08, 0)
        canvas.drawPath(vane, stroke=0, fill=1)
    canvas.restoreState()


def draw_art(name: str, theme: Theme, width: float) -> Any:
    """One of the drawings by name; raises SourceError for an unknown one."""
    if name == "pump":
        return _pump(theme, width)
    if name == "skid":
        return _skid(theme, width)
    raise SourceError(f"no drawing is called {name}")


def _pump(theme: Theme, width: float) -> Any:
    """Side view of a close-coupled end-suction pump with item numbers."""
    drawing = Drawing(width, 222)
    body = Group()
    body.translate(width / 2 - 190, 20)
    ink = {"strokeColor": _LINE, "strokeWidth": 1, "fillColor": _STEEL}
    body.add(Rect(20, 0, 340, 14, **ink))  # base plate
    body.add(Rect(0, 62, 52, 56, **ink))  # suction branch
    body.add(Rect(-8, 54, 10, 72, **ink))
    body.add(Circle(92, 90, 62, **ink))  # volute
    body.add(Rect(70, 140, 44, 30, **ink))  # discharge branch
    body.add(Rect(60, 166, 64, 9, **ink))
    body.add(Circle(92, 90, 40, strokeColor=_LINE, strokeWidth=0.6, fillColor=white))
    for vane in range(6):
        turn = math.radians(60 * vane)
        tip, mid = turn + 0.7, turn + 0.2
        path = Path(strokeColor=_LINE, strokeWidth=1, fillColor=None)
        path.moveTo(92 + 9 * math.cos(turn), 90 + 9 * math.sin(turn))
        path.curveTo(
            92 + 20 * math.cos(mid), 90 + 20 * math.sin(mid),
            92 + 30 * math.cos(mid), 90 + 30 * math.sin(mid),
            92 + 38 * math.cos(tip), 90 + 38 * math.sin(tip),
        )  # fmt: skip
        body.add(path)
    body.add(Circle(92, 90, 9, **ink))
    body.add(Rect(154, 56, 34, 68, **ink))  # bearing bracket
    body.add(Rect(188, 82, 26, 16, **ink))  # shaft and coupling
    body.add(Rect(214, 46, 140, 88, **ink))  # motor
    for fin in range(8):
        body.add(Line(226, 54 + 10 * fin, 330, 54 + 10 * fin, strokeColor=_LINE, strokeWidth=0.5))
    body.add(Rect(250, 134, 40, 18, **ink))  # terminal box
    body.add(Polygon([240, 46, 260, 14, 310, 14, 330, 46], **ink))
    items = (
        (-30, 90, 0),
        (92, 186, 0),
        (128, 90, 0),
        (171, 136, 0),
        (201, 106, 0),
        (284, 160, 0),
        (190, -12, 0),
    )
    for number, (x, y, _) in enumerate(items, start=1):
        body.add(Circle(x, y, 7, strokeColor=theme.accent, strokeWidth=0.8, fillColor=white))
        label = String(x, y - 2.6, str(number), fontName=theme.bold, fontSize=8)
        label.textAnchor = "middle"
        body.add(label)
    drawing.add(body)
    return drawing


def _skid(theme: Theme, width: float) -> Any:
    """Flow sheet of an ultrafiltration skid: boxes in a row, joined by arrows."""
    drawing = Drawing(width, 62)
    names = ("Feed tank", "Strainer", "Feed pump", "Membranes", "CIP tank")
    step = width / len(names)
    for at, name in enumerate(names):
        x = at * step + 2
        drawing.add(
            Rect(x, 16, step - 12, 30, strokeColor=_LINE, strokeWidth=0.8, fillColor=_STEEL)
        )
        label = String(
            x + (step - 12) / 2, 28, name, fontName=theme.regular, fontSize=min(7.5, step / 8.6)
        )
        label.textAnchor = "middle"
        drawing.add(label)
        if at + 1 < len(names):
            end = x + step
            drawing.add(Line(end - 12, 31, end - 3, 31, strokeColor=_LINE, strokeWidth=0.9))
            drawing.add(
                Polygon([end, 31, end - 5, 34, end - 5, 28], fillColor=_LINE, strokeWidth=0)
            )
    return drawing
