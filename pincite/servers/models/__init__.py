"""`pincite serve models`: the one process with the embedder's weights, behind TEI's HTTP shape.

One thread owns the model; questions go before passages. It knows texts and vectors, nothing of
documents, tenants or the index.
"""
