"""From bytes to pages: opening, reading and rendering a file inside a killable child process.

Knows nothing of chunks, indexes or queues. Only `ingest.parsing.pdf` knows the PDF library.
"""
