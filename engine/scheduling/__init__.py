"""Which tokens are computed in the next step.

Knows requests and blocks; neither the model nor the clock of any server.
"""
