"""The engine behind OpenAI's HTTP interface.

Knows HTTP and the engine's public face; all state belongs to the engine's own thread.
"""
