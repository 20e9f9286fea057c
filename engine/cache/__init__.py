"""The paged KV cache's bookkeeping: blocks, reference counts, the prefix cache.

Knows block ids and token ids, not tensors: the attention backend owns the memory.
"""
