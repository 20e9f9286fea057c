"""The paged-KV inference engine and its own server (not built yet).

Imports nothing of ours and knows nothing of documents, passages or citations.
"""
