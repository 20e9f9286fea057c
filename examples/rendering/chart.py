"""Line charts from ``~~~chart`` blocks.

Lines: ``x: label min max step``, ``y: label min max step`` (the label may hold spaces), then one
``series name: x,y x,y ...`` a curve.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reportlab.graphics.shapes import Drawing, Group, Line, PolyLine, Rect, String
from reportlab.lib.colors import HexColor

from examples.rendering.theme import Theme

_COLOURS = (HexColor("#1d4f73"), HexColor("#c0622d"), HexColor("#4f7d3a"))
_GREY = HexColor("#c4cbd0")
_DASHES = (None, (4, 2), (1, 2))


@dataclass(frozen=True)
class _Axis:
    label: str
    low: float
    high: float
    step: float

    @classmethod
    def read(cls, text: str) -> "_Axis":
        *words, low, high, step = text.split()
        return cls(" ".join(words), float(low), float(high), float(step))

    def place(self, value: float, start: float, length: float) -> float:
        return start + length * (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        num_steps = round((self.high - self.low) / self.step)
        return [self.low + at * self.step for at in range(num_steps + 1)]


def draw_chart(lines: Sequence[str], theme: Theme, width: float) -> Any:
    """The chart as a drawing of ``width`` points."""
    fields = dict(line.split(": ", 1) for line in lines if line.strip())
    x_axis, y_axis = _Axis.read(fields.pop("x")), _Axis.read(fields.pop("y"))
    height = min(width * 0.56, 175)
    left, bottom = 34.0, 30.0
    plot = (left, bottom, width - left - 8, height - bottom - 20)
    drawing = Drawing(width, height)
    _draw_grid(drawing, plot, (x_axis, y_axis), theme)
    for at, (name, points) in enumerate(fields.items()):
        pairs = [tuple(map(float, pair.split(","))) for pair in points.split()]
        coordinates = [
            place
            for x, y in pairs
            for place in (
                x_axis.place(x, plot[0], plot[2]),
                y_axis.place(y, plot[1], plot[3]),
            )
        ]
        line = PolyLine(coordinates, strokeColor=_COLOURS[at], strokeWidth=1.3)
        line.strokeDashArray = _DASHES[at]
        drawing.add(line)
        key_x = left + at * (width - left) / len(fields)
        key = Line(key_x, height - 8, key_x + 16, height - 8, strokeColor=_COLOURS[at])
        key.strokeDashArray, key.strokeWidth = _DASHES[at], 1.3
        drawing.add(key)
        label = name.removeprefix("series ")
        drawing.add(_text(key_x + 20, height - 11, label, theme, "start"))
    return drawing


def _draw_grid(
    drawing: Any, plot: tuple[float, float, float, float], axes: tuple[_Axis, _Axis], theme: Theme
) -> None:
    left, bottom, wide, high = plot
    x_axis, y_axis = axes
    drawing.add(Rect(left, bottom, wide, high, fillColor=None, strokeColor=_GREY, strokeWidth=0.6))
    for tick in x_axis.ticks():
        x = x_axis.place(tick, left, wide)
        drawing.add(Line(x, bottom, x, bottom + high, strokeColor=_GREY, strokeWidth=0.3))
        drawing.add(_text(x, bottom - 9, f"{tick:g}", theme, "middle"))
    for tick in y_axis.ticks():
        y = y_axis.place(tick, bottom, high)
        drawing.add(Line(left, y, left + wide, y, strokeColor=_GREY, strokeWidth=0.3))
        drawing.add(_text(left - 4, y - 2.5, f"{tick:g}", theme, "end"))
    drawing.add(_text(left + wide / 2, bottom - 21, x_axis.label, theme, "middle"))
    label = Group(_text(0, 0, y_axis.label, theme, "middle"))
    label.translate(9, bottom + high / 2)
    label.rotate(90)
    drawing.add(label)


def _text(x: float, y: float, text: str, theme: Theme, anchor: str) -> Any:
    label = String(x, y, text, fontName=theme.regular, fontSize=7)
    label.textAnchor = anchor
    return label
