"""The HTTP edge: errors, headers, authentication and streaming bodies.

Knows nothing of documents or answers.
"""
