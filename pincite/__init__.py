"""The assembled product: command line, supervisor, index and model servers.

The only package that may import all the others; nothing imports it.
"""

__version__ = "0.1.0"
