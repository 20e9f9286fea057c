"""Renders a source as a scanned document: pictures only, no text layer.

The pages are typed in Courier on a form, signed and stamped, then printed and "scanned": turned a
little, specked, unevenly lit and saved as JPEG. All chance is seeded, so the bytes repeat.
"""

import random
from collections.abc import Sequence
from io import BytesIO

from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageFont
from reportlab.lib.pagesizes import A4
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from examples.rendering.source import Fence, Source, SourceError
from examples.rendering.theme import FONT_FOLDER

_SIZE = (1240, 1754)  # A4 at 150 dpi
_LEFT, _TOP, _LEADING = 118, 120, 27
_INK = 38
_TYPEWRITER, _BOLD, _HAND = "com_____.pfb", "cob_____.pfb", "callig15.pfb"


def render_scan(source: Source) -> bytes:
    """The PDF of a source whose blocks are ``~~~page`` fences, one a page."""
    buffer = BytesIO()
    canvas = Canvas(buffer, pagesize=A4, invariant=1)
    canvas.setTitle(source.get("title"))
    canvas.setAuthor(source.get("author"))
    for num, block in enumerate(source.blocks):
        if not isinstance(block, Fence) or block.kind != "page":
            raise SourceError(f"{source.key}: a scan consists of ~~~page blocks only")
        chance = random.Random(f"{source.key} {num}")
        picture = _scanned(_typed_page(block.lines), chance)
        jpeg = BytesIO()
        picture.save(jpeg, "JPEG", quality=55)
        jpeg.seek(0)
        canvas.drawImage(ImageReader(jpeg), 0, 0, width=A4[0], height=A4[1])
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def _font(file: str, size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(str(FONT_FOLDER / file), size)


def _typed_page(lines: Sequence[str]) -> Image.Image:
    """The clean sheet. ``@rule``, ``@bold text``, ``@sign x dy name`` and ``@stamp x dy text``
    lines are drawn, every other line is typed; ``x`` in pixels, ``dy`` from the current line."""
    page = Image.new("L", _SIZE, 250)
    draw = ImageDraw.Draw(page)
    y = _TOP
    for line in lines:
        if line.startswith("@rule"):
            draw.line((_LEFT, y + 12, _SIZE[0] - 100, y + 12), fill=_INK, width=2)
        elif line.startswith("@bold "):
            draw.text((_LEFT, y), line[6:], font=_font(_BOLD, 28), fill=_INK)
        elif line.startswith("@sign "):
            _, x, dy, name = line.split(maxsplit=3)
            hand = _font(_HAND, 50)
            draw.text((int(x), y + int(dy)), name, font=hand, fill=70)
            continue
        elif line.startswith("@stamp "):
            _, x, dy, text = line.split(maxsplit=3)
            _stamp(page, (int(x), y + int(dy)), text)
            continue
        else:
            draw.text((_LEFT, y), line, font=_font(_TYPEWRITER, 21), fill=_INK)
        y += _LEADING
    return page


def _stamp(page: Image.Image, place: tuple[int, int], text: str) -> None:
    """A rubber stamp: framed capitals, set at an angle."""
    words = text.split(" / ")
    mark = Image.new("L", (330, 46 * len(words) + 34), 255)
    draw = ImageDraw.Draw(mark)
    draw.rounded_rectangle((4, 4, mark.width - 5, mark.height - 5), radius=12, outline=105, width=5)
    for at, word in enumerate(words):
        middle = (mark.width / 2, 38 + 46 * at)
        draw.text(middle, word, font=_font("_ab_____.pfb", 32), fill=105, anchor="mm")
    turned = mark.rotate(9, expand=True, fillcolor=255, resample=Image.Resampling.BICUBIC)
    area = (*place, place[0] + turned.width, place[1] + turned.height)
    page.paste(ImageChops.darker(page.crop(area), turned), area)


def _scanned(page: Image.Image, chance: random.Random) -> Image.Image:
    """The sheet as a cheap office scanner sees it."""
    angle = chance.uniform(0.5, 0.9) * chance.choice((-1, 1))
    turned = page.rotate(angle, fillcolor=205, resample=Image.Resampling.BICUBIC)
    turned = turned.filter(ImageFilter.GaussianBlur(0.7))
    grain = Image.frombytes(
        "L", (_SIZE[0] // 2, _SIZE[1] // 2), chance.randbytes(_SIZE[0] // 2 * (_SIZE[1] // 2))
    )
    grain = grain.resize(_SIZE).point(lambda level: 238 + level * 17 // 255)
    noisy = ImageChops.multiply(turned, grain)
    draw = ImageDraw.Draw(noisy)
    for _ in range(140):
        x, y, radius = (
            chance.randrange(_SIZE[0]),
            chance.randrange(_SIZE[1]),
            chance.choice((0, 0, 1, 2)),
        )
        draw.ellipse((x, y, x + radius, y + radius), fill=chance.randrange(60, 170))
    streak = chance.randrange(200, _SIZE[0] - 200)
    draw.line((streak, 0, streak + 2, _SIZE[1]), fill=205, width=1)
    shade = (
        Image.linear_gradient("L")
        .rotate(90)
        .resize(_SIZE)
        .point(lambda level: 232 + level * 23 // 255)
    )
    return ImageChops.multiply(noisy, shade)
