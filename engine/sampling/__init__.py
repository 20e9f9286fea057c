"""From logits to the next token of each request.

Knows requests and logits; not the model, not the blocks.
"""
