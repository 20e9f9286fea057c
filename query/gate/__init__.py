"""Whether a generator may write answers: a hand-made suite, its figures and its verdict.

Knows the prompt and the checks of `query.answers`; no documents, no index, no HTTP.
"""

from query.gate.results import GateResult, gate_reader, read_gate, store_gate
from query.gate.running import run_gate

__all__ = ["GateResult", "gate_reader", "read_gate", "run_gate", "store_gate"]
