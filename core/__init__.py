"""Shared vocabulary: domain types, ports, adapters, settings, errors.

Knows nothing of Celery tasks, HTTP routes, parsing or the engine.
"""
