"""`pincite up`: starts, watches, restarts and stops the processes of the embedded stack.

Knows nothing of documents or questions; it owns only the pids it started.
"""
