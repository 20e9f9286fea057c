"""Everything the engine raises on purpose.

EngineError
├── InvalidRequest          the request is wrong; says which parameter        (HTTP 400)
│   └── PromptTooLong       prompt + output cannot fit the model or the pool   (HTTP 400)
├── QueueFull               too many requests wait; try again later            (HTTP 429)
├── EngineStopped           the engine is stopping or its loop has died        (HTTP 503)
├── CacheCorrupted          the block pool's books do not add up: a bug, never a request's fault
├── StepFailed              a step raised: its requests are lost, the engine goes on (HTTP 500)
├── NoTokenAllowed          the token mask allows nothing, or logits are no numbers  (HTTP 500)
├── ModelLoadError          weights, configuration or tokenizer cannot be used
└── KernelUnavailable       this attention backend or device cannot run here
"""

from __future__ import annotations


class EngineError(Exception):
    """Root of the engine's errors. `code` is stable, for programs."""

    code = "engine_error"


class InvalidRequest(EngineError):
    """`param` names the offending parameter in OpenAI's words, when there is one."""

    code = "invalid_request"

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


class PromptTooLong(InvalidRequest):
    code = "context_length_exceeded"


class QueueFull(EngineError):
    code = "queue_full"

    def __init__(self, message: str, *, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class EngineStopped(EngineError):
    code = "engine_stopped"


class CacheCorrupted(EngineError):
    code = "cache_corrupted"


class StepFailed(EngineError):
    code = "step_failed"


class NoTokenAllowed(EngineError):
    code = "no_token_allowed"


class ModelLoadError(EngineError):
    code = "model_load_failed"


class KernelUnavailable(EngineError):
    code = "kernel_unavailable"
