"""The small servers that the embedded stack owns: `index` (points) and `models` (embeddings).

Each is one process behind HTTP; a configured URL replaces it. They know nothing of documents.
"""
