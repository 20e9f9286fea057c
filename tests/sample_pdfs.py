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
