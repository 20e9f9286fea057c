"""From a page's raw lines to text in reading order with its elements, and across pages.

Pure functions of `ingest.parsing.base.RawPage`; knows no file format, no chunks, no storage.
"""
