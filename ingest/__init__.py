"""One document -> indexed chunks, as a pure library.

Knows nothing of Celery, HTTP or questions.
"""
