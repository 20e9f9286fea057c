"""From ranked passages to an answer that quotes the line and names the page.

Knows nothing of HTTP; of the index only what `query.retrieval` returns.
"""
