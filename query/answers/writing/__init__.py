"""Answers in a language model's words, every sentence held against verbatim quotes.

Knows of the generator only its port; what may be quoted is decided before anything is written.
"""
