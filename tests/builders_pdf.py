"""Small PDFs made byte by byte, so that a test says exactly what is in its file.

`Sheet` is one page; `pdf` puts sheets into a file. The other functions make files that no writer
would: bombs, loops, lies and wreckage.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

A4 = (0.0, 0.0, 595.0, 842.0)
Box = tuple[float, float, float, float]


class Objects:
    """Numbered PDF objects on their way into a file."""

    def __init__(self) -> None:
        self._bodies: list[bytes] = []

    def add(self, body: str | bytes) -> int:
        """Store an object, return its number."""
        self._bodies.append(body.encode("latin-1") if isinstance(body, str) else body)
        return len(self._bodies)

    def reserve(self) -> int:
        return self.add(b"")

    def put(self, number: int, body: str | bytes) -> None:
        self._bodies[number - 1] = body.encode("latin-1") if isinstance(body, str) else body

    def stream(self, data: bytes, entries: str = "", *, compress: bool = False) -> int:
        if compress:
            data, entries = zlib.compress(data), entries + " /Filter /FlateDecode"
        head = f"<< /Length {len(data)} {entries} >>\nstream\n".encode("latin-1")
        return self.add(head + data + b"\nendstream")

    def build(self, root: int, trailer: str = "") -> bytes:
        out = bytearray(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
        offsets = []
        for number, body in enumerate(self._bodies, start=1):
            offsets.append(len(out))
            out += b"%d 0 obj\n" % number + body + b"\nendobj\n"
        start = len(out)
        out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(offsets) + 1)
        for offset in offsets:
            out += b"%010d 00000 n \n" % offset
        entries = f"<< /Size {len(offsets) + 1} /Root {root} 0 R {trailer} >>"
        out += f"trailer\n{entries}\nstartxref\n{start}\n%%EOF\n".encode("latin-1")
        return bytes(out)


@dataclass
class Sheet:
    """A page drawn with PDF operators. Coordinates from the lower left, as PDF has them."""

    box: Box = A4
    crop: Box | None = None
    rotate: int = 0
    operators: list[str] = field(default_factory=list)
    has_picture: bool = False

    def text(
        self, x: float, y: float, text: str, *, size: float = 11, font: str = "F1", extra: str = ""
    ) -> "Sheet":
        """`font`: F1 Helvetica, F2 Helvetica-Bold, F3 Courier, F9 without Unicode values."""
        escaped = text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
        self.operators.append(f"q {extra} BT /{font} {size} Tf {x} {y} Td ({escaped}) Tj ET Q")
        return self

    def lines(
        self, x: float, y: float, lines: Sequence[str], *, size: float = 11, leading: float = 1.2
    ) -> "Sheet":
        for number, line in enumerate(lines):
            self.text(x, y - number * leading * size, line, size=size)
        return self

    def rule(self, x0: float, y0: float, x1: float, y1: float, *, width: float = 0.5) -> "Sheet":
        self.operators.append(f"q {width} w {x0} {y0} m {x1} {y1} l S Q")
        return self

    def fill(self, x: float, y: float, wide: float, high: float, color: str = "0 0 0.5") -> "Sheet":
        self.operators.append(f"q {color} rg {x} {y} {wide} {high} re f Q")
        return self

    def picture(self, x: float, y: float, wide: float, high: float) -> "Sheet":
        """A small grey picture, stretched over the box."""
        self.has_picture = True
        self.operators.append(f"q {wide} 0 0 {high} {x} {y} cm /I1 Do Q")
        return self


def pdf(
    sheets: Sequence[Sheet],
    *,
    title: str | None = None,
    outline: Sequence[tuple[str, int]] = (),
    labels: str | None = None,
) -> bytes:
    """A well-formed file. `outline` is (title, page from 1); `labels` a /PageLabels number tree."""
    objects = Objects()
    root, pages = objects.reserve(), objects.reserve()
    fonts = _fonts(objects)
    kids = []
    for sheet in sheets:
        resources = f"/Font << {fonts} >>"
        if sheet.has_picture:
            entries = (
                "/Type /XObject /Subtype /Image /Width 4 /Height 4 /BitsPerComponent 8"
                " /ColorSpace /DeviceGray"
            )
            number = objects.stream(bytes(range(64, 192, 8)), entries)
            resources += f" /XObject << /I1 {number} 0 R >>"
        content = objects.stream("\n".join(sheet.operators).encode("latin-1"), compress=True)
        crop = f"/CropBox {_array(sheet.crop)}" if sheet.crop else ""
        kids.append(
            objects.add(
                f"<< /Type /Page /Parent {pages} 0 R /MediaBox {_array(sheet.box)} {crop}"
                f" /Rotate {sheet.rotate} /Resources << {resources} >> /Contents {content} 0 R >>"
            )
        )
    listed = " ".join(f"{kid} 0 R" for kid in kids)
    objects.put(pages, f"<< /Type /Pages /Kids [{listed}] /Count {len(kids)} >>")
    entries = f"/Type /Catalog /Pages {pages} 0 R"
    if outline:
        entries += f" /Outlines {_outline(objects, outline, kids)} 0 R"
    if labels:
        entries += f" /PageLabels {labels}"
    objects.put(root, f"<< {entries} >>")
    info = f"/Info {objects.add(f'<< /Title ({title}) >>')} 0 R" if title else ""
    return objects.build(root, info)


def plain(*pages: str) -> bytes:
    """A page for each text; its lines one under the other."""
    return pdf([Sheet().lines(72, 740, text.split("\n")) for text in pages])


def _fonts(objects: Objects) -> str:
    found = []
    for name, base in (("F1", "Helvetica"), ("F2", "Helvetica-Bold"), ("F3", "Courier")):
        number = objects.add(
            f"<< /Type /Font /Subtype /Type1 /BaseFont /{base} /Encoding /WinAnsiEncoding >>"
        )
        found.append(f"/{name} {number} 0 R")
    nothing = " ".join(f"<{code:02x}> <fffd>" for code in range(33, 127))
    cmap = objects.stream(
        b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /Nothing def"
        b" /CMapType 2 def 1 begincodespacerange <00> <ff> endcodespacerange "
        + f"94 beginbfchar {nothing} endbfchar endcmap end end".encode()
    )
    number = objects.add(
        f"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode {cmap} 0 R >>"
    )
    found.append(f"/F9 {number} 0 R")
    return " ".join(found)


def _outline(objects: Objects, entries: Sequence[tuple[str, int]], kids: Sequence[int]) -> int:
    root = objects.reserve()
    numbers = [objects.reserve() for _ in entries]
    for position, (title, page) in enumerate(entries):
        previous = f"/Prev {numbers[position - 1]} 0 R" if position else ""
        following = f"/Next {numbers[position + 1]} 0 R" if position + 1 < len(numbers) else ""
        objects.put(
            numbers[position],
            f"<< /Title ({title}) /Parent {root} 0 R /Dest [{kids[page - 1]} 0 R /Fit]"
            f" {previous} {following} >>",
        )
    objects.put(
        root,
        f"<< /Type /Outlines /First {numbers[0]} 0 R /Last {numbers[-1]} 0 R"
        f" /Count {len(numbers)} >>",
    )
    return root


def _array(box: Box) -> str:
    return "[" + " ".join(f"{value:g}" for value in box) + "]"


# ------------------------------------------------------------------------- hostile and broken


def form_bomb(depth: int = 10, fan: int = 10) -> bytes:
    """Forms that draw forms: `fan` to the power of `depth` drawings in about 2 KB."""
    return form_bomb_among([None], depth, fan)


def form_bomb_among(texts: Sequence[str | None], depth: int = 10, fan: int = 10) -> bytes:
    """A page for each text, and one with the bomb for each None."""
    objects = Objects()
    root, pages, font = objects.reserve(), objects.reserve(), objects.reserve()
    form = "/Type /XObject /Subtype /Form /BBox [0 0 9 9]"
    inner = objects.stream(b"0 0 1 1 re f", form)
    for _ in range(depth):
        resources = f"/Resources << /XObject << /X {inner} 0 R >> >>"
        inner = objects.stream(b"/X Do " * fan, f"{form} {resources}")
    kids = []
    for text in texts:
        drawn = "/X Do" if text is None else f"BT /F1 11 Tf 72 700 Td ({text}) Tj ET"
        content = objects.stream(drawn.encode())
        kids.append(
            objects.add(
                f"<< /Type /Page /Parent {pages} 0 R /MediaBox {_array(A4)} /Contents {content} 0 R"
                f" /Resources << /Font << /F1 {font} 0 R >> /XObject << /X {inner} 0 R >> >> >>"
            )
        )
    objects.put(font, "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    objects.put(root, f"<< /Type /Catalog /Pages {pages} 0 R >>")
    listed = " ".join(f"{kid} 0 R" for kid in kids)
    objects.put(pages, f"<< /Type /Pages /Kids [{listed}] /Count {len(kids)} >>")
    return objects.build(root)


def glyph_bomb(num_glyphs: int) -> bytes:
    """One page with very many letters, in a small file."""
    line = "(" + "a" * 1000 + ") Tj 0 -1 Td "
    sheet = Sheet()
    sheet.operators.append("BT /F1 1 Tf 0 800 Td " + line * (num_glyphs // 1000) + "ET")
    return pdf([sheet])


def page_tree(kids_of_root: str, count: int, more: Sequence[str] = ()) -> bytes:
    """A catalog over a page tree with these kids and this count, whatever they are worth."""
    objects = Objects()
    root, pages = objects.reserve(), objects.reserve()
    for body in more:
        objects.add(body)
    objects.put(root, f"<< /Type /Catalog /Pages {pages} 0 R >>")
    objects.put(pages, f"<< /Type /Pages /Kids [{kids_of_root}] /Count {count} >>")
    return objects.build(root)


def no_pages() -> bytes:
    return page_tree("", 0)


def page_loop() -> bytes:
    """A page tree whose only kid is itself."""
    return page_tree("2 0 R", 1)


def one_good_page_of_two() -> bytes:
    """The first page can be read; the second has an area of nothing."""
    good = Sheet().text(72, 700, "The first page can be read.")
    return pdf([good, Sheet(box=(0, 0, 0, 0), crop=(5, 5, 5, 5))])


def for_a_certificate() -> bytes:
    """Encrypted for a certificate: nobody opens it without the key."""
    objects = Objects()
    root, pages = objects.reserve(), objects.reserve()
    objects.put(root, f"<< /Type /Catalog /Pages {pages} 0 R >>")
    objects.put(pages, "<< /Type /Pages /Kids [] /Count 0 >>")
    handler = objects.add(
        "<< /Filter /Adobe.PubSec /SubFilter /adbe.pkcs7.s5 /V 4 /Length 128"
        " /CF << /DefaultCryptFilter << /CFM /AESV2 /Length 16 /Recipients [<30>] >> >>"
        " /StmF /DefaultCryptFilter /StrF /DefaultCryptFilter >>"
    )
    return objects.build(root, f"/Encrypt {handler} 0 R /ID [<00> <00>]")


def with_password(user: str, *, owner: str = "owner") -> bytes:
    """Encrypted with RC4; an empty user password opens it for everybody."""
    from io import BytesIO

    from reportlab.lib.pdfencrypt import StandardEncryption
    from reportlab.pdfgen.canvas import Canvas

    out = BytesIO()
    canvas = Canvas(out, encrypt=StandardEncryption(user, ownerPassword=owner, strength=128))
    canvas.drawString(72, 700, "Words behind a password.")
    canvas.showPage()
    canvas.save()
    return out.getvalue()
