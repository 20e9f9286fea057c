"""Evaluations of retrieval and answers: data sets, a runner and the baselines they are held to.

Not part of the distribution, and nothing imports it.
"""
