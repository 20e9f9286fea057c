"""Between text and tokens: tokenizer, incremental detokenising, stop strings, chat template.

Knows no scheduling and no tensors.
"""
