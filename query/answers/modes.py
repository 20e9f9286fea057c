"""Quotes or written text: which of the two an answer is, and the stable word that says why.

`auto` lets a generator write only where that very generator (its fingerprint) passed the gate; the
answer quotes otherwise. Whatever was chosen, nothing is written for a question that the documents
do not answer, and quotes stand in for a generator that is down, overloaded or late.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import structlog

from core.domain.answers import AnswerMode
from core.domain.generation import GeneratorInfo
from core.errors import InvalidInput, Overloaded, PinciteError, TimedOut
from core.ports.generator import Generator
from query.services import AnswerModeChoice

__all__ = ["Mode", "ModeReason", "ReadGate", "choose_mode", "reason_of"]

log = structlog.get_logger(__name__)

# Whether the generator with this fingerprint passed the gate; None: it was never tried.
ReadGate = Callable[[str], bool | None]


class ModeReason(StrEnum):
    """Stable: programs read them. The first group is known before anything is searched."""

    REQUESTED = "requested"  # by this request
    CONFIGURED = "configured"  # by `answer.mode`
    GATE_PASSED = "gate_passed"
    GATE_FAILED = "gate_failed"
    GATE_NOT_RUN = "gate_not_run"
    NO_GENERATOR = "no_generator"

    NO_EVIDENCE = "no_evidence"  # the documents do not answer: nothing is written
    PROMPT_TOO_LONG = "prompt_too_long"  # not even one passage fits beside the question
    GENERATOR_UNAVAILABLE = "generator_unavailable"
    GENERATOR_OVERLOADED = "generator_overloaded"
    GENERATOR_LATE = "generator_late"
    GENERATOR_REFUSED = "generator_refused"
    NOTHING_WRITTEN = "nothing_written"
    NOTHING_SUPPORTED = "nothing_supported"  # every sentence was replaced by its quote


@dataclass(frozen=True, slots=True)
class Mode:
    """
    is_held: sentences are held until they are verified, and unsupported ones replaced (`auto`).
    generator: what writes; None exactly when the mode is extractive.
    """

    mode: AnswerMode
    reason: ModeReason
    is_held: bool = False
    generator: GeneratorInfo | None = None


def choose_mode(
    requested: AnswerModeChoice,
    configured: AnswerModeChoice,
    generator: Generator | None,
    read_gate: ReadGate,
) -> Mode:
    """The request's mode, else the configured one. Never raises for a generator that is down."""
    wanted = requested or configured or "auto"
    asked_for = ModeReason.CONFIGURED if requested is None else ModeReason.REQUESTED
    if wanted == "extractive":
        return _quotes(asked_for)
    if generator is None:
        return _quotes(ModeReason.NO_GENERATOR)
    try:
        info = generator.info()
    except PinciteError as error:
        log.warning("answer.generator_unknown", code=error.code)
        return _quotes(reason_of(error))
    if wanted == "generative":
        return Mode(AnswerMode.GENERATIVE, asked_for, generator=info)
    has_passed = read_gate(info.fingerprint)
    if has_passed:
        return Mode(AnswerMode.GENERATIVE, ModeReason.GATE_PASSED, is_held=True, generator=info)
    return _quotes(ModeReason.GATE_NOT_RUN if has_passed is None else ModeReason.GATE_FAILED)


def reason_of(error: PinciteError) -> ModeReason:
    """Why quotes stand in for a generator that failed like this."""
    if isinstance(error, Overloaded):
        return ModeReason.GENERATOR_OVERLOADED
    if isinstance(error, TimedOut):
        return ModeReason.GENERATOR_LATE
    if isinstance(error, InvalidInput):
        return ModeReason.GENERATOR_REFUSED
    return ModeReason.GENERATOR_UNAVAILABLE


def _quotes(reason: ModeReason) -> Mode:
    return Mode(AnswerMode.EXTRACTIVE, reason)
