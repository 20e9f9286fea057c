"""The Celery app: tasks, outbox relay, sweeper and bucket watcher.

Knows nothing of questions, answers or the engine.
"""
