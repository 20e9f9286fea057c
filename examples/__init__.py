"""The sample bucket: ten documents of an invented company and questions about them.

Knows nothing of how documents are ingested, searched or answered.
"""
