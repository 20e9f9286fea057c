"""Attention over the paged pool: one contract (`base`), one file or folder a backend.

Knows tensors and block tables; not requests, not sampling.
"""
