"""`pincite serve index`: the one owner of the edge shards, behind the Qdrant REST subset.

What is supported and what is refused: docs/api/index-subset.md. It knows nothing of documents,
tenants or embedders: those are payload keys and vectors to it.
"""
