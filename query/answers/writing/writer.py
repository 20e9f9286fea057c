"""The written walk: give, assemble, generate, verify; and quotes wherever writing fails."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace

import structlog

from core.domain.access import Principal
from core.domain.answers import AnswerMode, Usage
from core.domain.generation import GenerationEnd, GenerationRequest, GeneratorInfo, TextPiece
from core.errors import PinciteError
from core.ports.generator import Generator as TextGenerator
from query.answers.composition import PARAGRAPH
from query.answers.deps import AnswerDeps
from query.answers.draft import Draft
from query.answers.events import Event
from query.answers.finding import Found
from query.answers.modes import Mode, ModeReason, reason_of
from query.answers.quotes import Quote
from query.answers.writing.given import GivenPassage, give
from query.answers.writing.prompting import PREFIX, PromptTooLong, assemble, cache_salt
from query.answers.writing.written_text import HeldText, LiveText, Shown, WrittenText
from query.services import Asked

__all__ = ["Writer", "Written"]

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Written:
    """How it went. `mode` is extractive when no sentence of the generator's own was sent."""

    mode: AnswerMode
    reason: ModeReason
    model: str | None = None
    usage: Usage = field(default_factory=Usage)
    queue_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes one answer.

    quotes: what the answer would quote, at least one. question: what the generator is asked: the
    parts that the quotes answer.
    """

    principal: Principal
    asked: Asked
    question: str
    found: Found
    quotes: Sequence[Quote]
    mode: Mode
    draft: Draft
    deps: AnswerDeps

    def write(self) -> Generator[Event, None, Written]:
        """Send the answer.

        A generator that fails is stood in for by quotes as long as nothing was sent of its text,
        and in `auto` later, too. Raises its error (GeneratorUnavailable, Overloaded, TimedOut)
        where text was sent at once and then no more came; Abandoned; ObjectStoreUnavailable,
        CatalogUnavailable.
        """
        generator, info = self.deps.generator, self.mode.generator
        assert generator is not None
        assert info is not None
        given: Sequence[GivenPassage] = give(
            self.principal, self.found, self.quotes, info, self.deps
        )
        shown = Shown(given)
        try:
            request, given = self._request(generator, info, given)
        except PinciteError as error:
            yield from self._quote_the_rest(shown)
            return Written(AnswerMode.EXTRACTIVE, _reason(error))
        text: WrittenText = (
            HeldText(self.draft, given, shown, self.quotes)
            if self.mode.is_held
            else LiveText(self.draft, given, shown)
        )
        try:
            end = yield from self._generate(generator, request, text)
        except PinciteError as error:
            return (yield from self._stand_in(error, text, shown, info))
        return (yield from self._conclude(end, text, shown, info))

    def _request(
        self, generator: TextGenerator, info: GeneratorInfo, given: Sequence[GivenPassage]
    ) -> tuple[GenerationRequest, Sequence[GivenPassage]]:
        settings = self.deps.settings
        prompt = assemble(
            self.question,
            given,
            self.asked.history,
            generator,
            settings,
            self.asked.max_tokens,
        )
        request = prompt.request
        if "cache_salt" in info.capabilities:
            request = replace(
                request,
                cache_salt=cache_salt(self.principal.tenant_id, settings),
                shared_prefix_tokens=self.deps.prefix_lengths.of(generator, PREFIX),
            )
        return request, prompt.given

    def _generate(
        self, generator: TextGenerator, request: GenerationRequest, text: WrittenText
    ) -> Generator[Event, None, GenerationEnd]:
        generations, is_cancelled = self.deps.generations, self.asked.is_cancelled
        end = GenerationEnd("stop")
        with generations.reading(generator, request, is_cancelled) as events:
            for event in events:
                if isinstance(event, TextPiece):
                    yield from text.push(event.text)
                else:
                    end = event
        yield from text.end(is_cut=end.finish_reason == "length")
        return end

    def _stand_in(
        self, error: PinciteError, text: WrittenText, shown: Shown, info: GeneratorInfo
    ) -> Generator[Event, None, Written]:
        """Quotes for what did not come; or the error, after text that went out unverified."""
        log.warning(
            "answer.generator_failed",
            answer_id=self.draft.answer.id,
            code=error.code,
            num_written=text.num_written,
        )
        was_sent = self.draft.length > 0
        yield from text.break_off()
        if was_sent and not self.mode.is_held:
            self.draft.answer = replace(
                self.draft.answer,
                mode=AnswerMode.GENERATIVE,
                mode_reason=self.mode.reason,
                model=info.model,
            )
            raise error
        yield from self._quote_the_rest(shown)
        if text.num_written:
            return Written(AnswerMode.GENERATIVE, _reason(error), info.model)
        return Written(AnswerMode.EXTRACTIVE, _reason(error))

    def _conclude(
        self, end: GenerationEnd, text: WrittenText, shown: Shown, info: GeneratorInfo
    ) -> Generator[Event, None, Written]:
        """A complete generation; quotes in place of one of which nothing was fit to be sent."""
        mode, reason = AnswerMode.GENERATIVE, self.mode.reason
        if not text.num_written:
            mode = AnswerMode.EXTRACTIVE
            is_empty = not end.usage.completion_tokens and not self.draft.length
            reason = (
                ModeReason.NOTHING_SUPPORTED
                if self.mode.is_held and not is_empty
                else ModeReason.NOTHING_WRITTEN
            )
            yield from self._quote_the_rest(shown)
        return Written(mode, reason, info.model, end.usage, end.queue_ms)

    def _quote_the_rest(self, shown: Shown) -> Iterator[Event]:
        """The quotes that were not shown yet, one a paragraph."""
        for quote in shown.unused(self.quotes):
            shown.use(quote)
            lead = PARAGRAPH if self.draft.length else ""
            yield from self.draft.quote(quote, shown.number_of(quote), lead)


def _reason(error: PinciteError) -> ModeReason:
    return ModeReason.PROMPT_TOO_LONG if isinstance(error, PromptTooLong) else reason_of(error)
