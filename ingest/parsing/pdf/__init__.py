"""PDF by PyMuPDF, behind `SourceDocument`: the one package that knows the library (AGPL).

Only ever imported inside the parser child: the library may crash, hang or eat memory on a hostile
file, holds the GIL while it works and must not be called from two threads.
"""

from ingest.parsing.pdf.document import PdfDocument

__all__ = ["PdfDocument"]
