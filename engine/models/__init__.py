"""The decoder and its configuration.

Knows tensors and attention backends; not requests, not how weights came here.
"""
