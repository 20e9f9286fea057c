"""Small PDFs with known words, made on the spot."""

import io

from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas


def make_pdf(title: str, pages: list[list[str]]) -> bytes:
    """One page a list, one line a string; the title in the document's metadata."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A4, invariant=1)
    canvas.setTitle(title)
    for lines in pages:
        text = canvas.beginText(72, 770)
        text.setFont("Helvetica", 11)
        text.setLeading(16)
        for line in lines:
            text.textLine(line)
        canvas.drawText(text)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def report_pdf(number: int, *, num_pages: int, edition: str = "first") -> bytes:
    """A report nobody else has: its number, edition and page are in every sentence."""
    pages = [
        [
            f"Station report {number}, {edition} edition, sheet {page}.",
            f"Pump P{number:03d} on sheet {page} was measured at {number * 7 + page} litres.",
            f"The inspector of station {number} signed sheet {page} without remarks.",
            f"The next visit to station {number} is planned after {page + 2} months.",
        ]
        for page in range(1, num_pages + 1)
    ]
    return make_pdf(f"Station report {number}", pages)


def endless_pdf() -> bytes:
    """A page that would take years: forms that draw the next form ten times, twelve deep."""
    depth, fan_out = 12, 10
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R"
        b" /Resources << /XObject << /X 5 0 R >> >> >>",
        b"<< /Length 5 >>\nstream\n/X Do\nendstream",
    ]
    for level in range(depth):
        content = b"/X Do\n" * fan_out if level < depth - 1 else b"0 0 1 1 re f"
        resources = (
            b"<< /XObject << /X %d 0 R >> >>" % (6 + level) if level < depth - 1 else b"<< >>"
        )
        objects.append(
            b"<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources %s /Length %d >>\n"
            b"stream\n%s\nendstream" % (resources, len(content), content)
        )
    out = bytearray(b"%PDF-1.4\n")
    offsets = []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer\n<< /Size %d /Root 1 0 R >>\n" % (len(objects) + 1)
    out += b"startxref\n%d\n%%%%EOF\n" % start
    return bytes(out)
