"""Implementations of the ports on real software: databases, stores, brokers, model servers.

Reached through `core.factory` only, and imported lazily: vendor SDKs live here and nowhere else.
"""
