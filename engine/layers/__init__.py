"""The decoder's parts: linear, norm, rotary embedding.

Know tensors only.
"""
