"""Protocols between the application and the world; adapters implement them.

Ports are synchronous and thread-safe. A method that reads chunks, answers or bytes takes the
Principal first, and refuses what that Principal's tenant does not own.
"""
