"""Sixty public PDFs and what each must come to, judged by looking at the file.

(file below ../shared/data/pdf, pages or None, expected, a text that must be found or ""). The files
are not part of the repository; where they are missing, the hostile files of `tests.builders_pdf`
stand for them.

`expected`: `text` (searchable) or the code of the error that the document gets.
"""

Expected = tuple[str, int | None, str, str]

SIXTY: tuple[Expected, ...] = (
    # Encrypted: with a password nobody gave, for a certificate, and with an empty password.
    ("docling/2206.01062_pg3.pdf", None, "needs_password", ""),
    ("pdf.js/issue6010_1.pdf", None, "needs_password", ""),
    ("pdf.js/pr6531_2.pdf", None, "needs_password", ""),
    ("pdfminer.six/aes-256-r6.pdf", None, "needs_password", ""),
    ("pdfminer.six/rc4-40.pdf", None, "needs_password", ""),
    ("sample-files/libreoffice-writer-password.pdf", None, "needs_password", ""),
    ("pdfbox/AESkeylength128.pdf", None, "needs_password", ""),
    ("onyx/owner_protected.pdf", 1, "text", "Hello World"),
    ("unstructured/copy-protected.pdf", 2, "text", "Deep Learning"),
    ("pdfminer.six/encrypted_doc_no_id.pdf", 3, "needs_ocr", ""),  # its one picture is a fax
    # No PDF at all: paths and words where a file should be, a body without its header.
    ("unstructured/DA-619p-004bb9.pdf", None, "unsupported", ""),
    ("unstructured/layout-parser-paper-fast-16p.pdf", None, "unsupported", ""),
    ("unstructured/warmup.pdf", None, "unsupported", ""),
    ("pdf.js/bug1606566.pdf", None, "unsupported", ""),
    # Fuzzed, cut off, emptied.
    ("pdf.js/GHOSTSCRIPT-698804-1-fuzzed.pdf", None, "corrupt", ""),
    ("pdf.js/poppler-395-0-fuzzed.pdf", None, "corrupt", ""),
    ("pdf.js/poppler-742-0-fuzzed.pdf", None, "corrupt", ""),
    ("pdf.js/poppler-937-0-fuzzed.pdf", None, "corrupt", ""),
    ("pdf.js/poppler-85140-0.pdf", None, "corrupt", ""),
    ("pdf.js/poppler-91414-0-53.pdf", None, "corrupt", ""),
    ("pdf.js/REDHAT-1531897-0.pdf", None, "corrupt", ""),
    ("pdf.js/issue9105_other.pdf", None, "corrupt", ""),
    ("pdf.js/issue9418.pdf", None, "corrupt", ""),
    ("OCRmyPDF/invalid.pdf", None, "corrupt", ""),
    # Pages on which nothing shows.
    ("pdf.js/PDFBOX-3148-2-fuzzed.pdf", 1, "corrupt", ""),
    ("pdfbox/PDFBOX-3068.pdf", 1, "corrupt", ""),
    ("onyx/with_image.pdf", 1, "corrupt", ""),  # the picture is never drawn
    # Scans and drawings.
    ("OCRmyPDF/cardinal.pdf", 4, "needs_ocr", ""),
    ("OCRmyPDF/linn.pdf", 1, "needs_ocr", ""),
    ("docling/ocr_test.pdf", 1, "needs_ocr", ""),
    ("docling/ocr_test_rotated_90.pdf", 1, "needs_ocr", ""),
    ("pdfbox/multitiff.pdf", 3, "needs_ocr", ""),
    ("pdfminer.six/pdf-with-jbig2.pdf", 1, "needs_ocr", ""),
    ("pdf.js/ccitt_EndOfBlock_false.pdf", 1, "needs_ocr", ""),
    # Letters that can be seen, in fonts that do not say what they are.
    ("pdf.js/issue19802.pdf", 1, "needs_ocr", ""),
    ("pdf.js/bug911034.pdf", 1, "needs_ocr", ""),
    ("pdf.js/bug1151216.pdf", 1, "needs_ocr", ""),
    ("pdfminer.six/issue-791-non-unicode-cmap.pdf", 1, "needs_ocr", ""),
    # The text of a scan, invisible above it; text that nothing is under.
    ("unstructured/pdf-with-ocr-text.pdf", 1, "text", "the progress of the Foundation"),
    ("docling/invisible_text_layer.pdf", 1, "text", "Visible heading line"),
    # Chinese, Japanese, Korean.
    ("pdf.js/SimFang-variant.pdf", 1, "text", "世 界"),
    ("camelot/twotables.pdf", 1, "text", "当期首残高 | 5,664 | 749 | 12,017"),
    ("kotaemon/table.pdf", 1, "text", "パワー半導体チップ"),
    ("docling/normal_4pages.pdf", 4, "text", "세계보건기구"),
    ("unstructured/korean-text-with-tables.pdf", 1, "text", "빅포인트"),
    # Arabic, Persian, Hebrew.
    ("docling/right_to_left_01.pdf", 1, "text", "تحسين الإنتاجية وحل المشكلات"),
    ("docling/right_to_left_03.pdf", 1, "text", "شماره استاندارد ملی | 20300"),
    ("pdf.js/issue11656.pdf", 1, "text", "שלום עולם מה שלום כולם?"),
    # Turned pages and turned text.
    ("pdfbox/rot90.pdf", 1, "text", "Page rotation: 90"),
    ("pdfbox/PDFBOX-2984-rotations.pdf", 6, "text", "90° text matrix"),
    ("camelot/clockwise_table_1.pdf", 1, "text", "Kerala | 5738 | 6633 | 8864 | 8297"),
    ("camelot/rotated_page.pdf", 1, "text", "Adjusted Baseline by Category"),
    # Type 3 fonts, NUL characters, a file inside.
    ("pdf.js/bug1513120_reduced.pdf", 1, "text", "Questions about your bill?"),
    ("unstructured/layout-parser-paper-fast.pdf", 2, "text", "Learning Based Document Image"),
    ("pdfbox/embedded_zip.pdf", 1, "text", "haystack"),
    # Columns, tables, ligatures.
    ("unstructured/multi-column.pdf", 13, "text", "surrogates of questions in the objective"),
    ("camelot/foo.pdf", 1, "text", "2012_2 | 3.30 | 1.3 | 5.9% | 9.5% | 29.2% | 17.4%"),
    ("sample-files/GeoTopo-komprimiert.pdf", 117, "text", "Definition"),
    # Books.
    ("pdf.js/freeculture.pdf", 352, "text", "Creative Commons"),
    ("unstructured/DA-619p.pdf", 619, "text", "Sylaise the Hearthkeeper"),
)
