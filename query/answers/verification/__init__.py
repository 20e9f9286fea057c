"""Whether quotes support a sentence, without a model.

Knows texts only: no passages, no pages, no generator.
"""

from query.answers.verification.verifier import Support, verify

__all__ = ["Support", "verify"]
