"""The FastAPI service: search, answers, documents.

Knows nothing of parsing, Celery or model weights: it reaches them through ports.
"""
