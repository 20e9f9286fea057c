"""Benchmarks, run as `python -m bench.<name>`; results are kept with the facts of the machine.

Not part of the distribution, and nothing imports it.
"""
