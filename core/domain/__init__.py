"""Frozen domain types: documents, pages, chunks, work and answers.

Knows nothing of databases, HTTP or file formats.
"""
