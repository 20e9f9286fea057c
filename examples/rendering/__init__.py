"""Turns the text sources of the sample documents into PDF files, byte for byte repeatable.

Knows nothing of Pincite: reportlab and pillow are all it uses.
"""
