"""From a question to ranked passages: search in both legs, fusion, best-sentence reranking.

Knows nothing of answers, citations or HTTP.
"""
