"""Paged decode and prefill attention as Triton kernels: the second backend of the contract.

`backend` is what the registry imports; it loads the kernels, and with them `triton`, only when a
backend is made. Knows block tables and slots, not requests or models."""
