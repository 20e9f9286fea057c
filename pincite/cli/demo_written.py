"""The demo's second half: questions answered in the engine's own words, and what came of them."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import httpx
import typer

from core.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from core.settings import GeneratorSettings

MIN_QUESTIONS = 8
_COUNTER = "pincite_engine_request_success_total"
_METRICS_TIMEOUT_S = 10.0


class Asks(Protocol):
    """The part of `pincite.client.Client` that is needed here."""

    def ask(self, question: str, *, mode: str | None = None) -> dict[str, Any]: ...

    def page(self, document_id: str, number: int) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Written:
    """What the answers were like. `problems` says why the demo has failed; empty when it has not.

    first_token_ms, tokens_per_s: medians. The shares are of all sentences of all answers.
    """

    num_questions: int
    num_completed: int
    first_token_ms: float
    tokens_per_s: float
    supported: float
    flagged: float
    replaced: float
    cached: float
    problems: tuple[str, ...]

    def lines(self) -> list[str]:
        """For the summary."""
        return [
            f"  written by the engine:        {self.num_completed} of {self.num_questions} answers",
            f"  its first words, median:      {self.first_token_ms:.0f} ms,"
            f" then {self.tokens_per_s:.0f} tokens/s",
            f"  its sentences:                {self.supported:.0%} supported,"
            f" {self.flagged:.0%} flagged, {self.replaced:.0%} replaced by the quote",
            f"  its prompts, from the cache:  {self.cached:.0%} of the tokens",
            *(f"  problem:                      {problem}" for problem in self.problems),
        ]


def ask_in_words(
    client: Asks,
    count_completed: Callable[[], int],
    questions: Sequence[str],
    show: Callable[[dict[str, Any]], list[str]],
) -> Written:
    """Ask each question in mode `generative`, print the answers (with what `show` says of their
    citations), and judge them.

    Args:
        count_completed: how many requests the engine has completed so far, by its own count.
    """
    before = count_completed()
    answers = []
    typer.echo(f"\nthe same collection, in the engine's words ({len(questions)} questions)")
    for question in questions:
        answer = client.ask(question, mode="generative")
        answers.append(answer)
        typer.echo(f"\n{question}")
        for line in (*_told(answer), *show(answer)):
            typer.echo(f"     {line}")
    num_completed = count_completed() - before
    return _judge(client, answers, num_completed)


def _judge(client: Asks, answers: Sequence[dict[str, Any]], num_completed: int) -> Written:
    sentences = [sentence for answer in answers for sentence in answer["sentences"]]
    written = [answer for answer in answers if answer["usage"]["completion_tokens"]]
    prompts = sum(answer["usage"]["prompt_tokens"] for answer in written)
    return Written(
        num_questions=len(answers),
        num_completed=num_completed,
        first_token_ms=_median([answer["timings"]["ttft_ms"] for answer in written]),
        tokens_per_s=_median([_tokens_per_s(answer) for answer in written]),
        supported=_share(sentences, lambda s: s["verdict"] == "supported" and not s["is_replaced"]),
        flagged=_share(sentences, lambda s: s["verdict"] != "supported"),
        replaced=_share(sentences, lambda s: s["is_replaced"]),
        cached=sum(a["usage"]["cached_tokens"] for a in written) / prompts if prompts else 0.0,
        problems=tuple(_problems(client, answers, num_completed)),
    )


def _problems(client: Asks, answers: Sequence[dict[str, Any]], num_completed: int) -> list[str]:
    found = []
    if len(answers) < MIN_QUESTIONS:
        found.append(f"only {len(answers)} questions could be asked, not {MIN_QUESTIONS}")
    if num_completed < len(answers):
        found.append(f"the engine completed {num_completed} requests for {len(answers)} questions")
    for number, answer in enumerate(answers, start=1):
        if number > 1 and not answer["usage"]["cached_tokens"]:
            found.append(f"nothing of prompt {number} came from the cache")
        found += [
            f"answer {number} cites [{citation['n']}], which is not what its page says"
            for citation in answer["citations"]
            if not _is_verbatim(client, answer, citation)
        ]
    return found


def _is_verbatim(client: Asks, answer: dict[str, Any], citation: dict[str, Any]) -> bool:
    """Whether every quote of a citation stands on its pages, word for word."""
    sources = {source["id"]: source for source in answer["sources"]}
    for quoted in citation["sources"]:
        source = sources.get(quoted["source_id"])
        if source is None or not quoted["locations"]:
            return False
        parts = [
            client.page(source["document_id"], place["page"])["text"][place["start"] : place["end"]]
            for place in quoted["locations"]
        ]
        if "\n".join(parts) != quoted["quote"]:
            return False
    return bool(citation["sources"])


def completed_requests(generator: GeneratorSettings) -> int:
    """Requests the engine has completed since it was started, by its own metrics.

    Raises Unavailable when it does not tell.
    """
    key = generator.api_key.get_secret_value()
    url = f"{generator.server_url}/metrics"
    try:
        response = httpx.get(
            url,
            headers={"Authorization": f"Bearer {key}"},
            timeout=_METRICS_TIMEOUT_S,
            trust_env=False,
        ).raise_for_status()
    except httpx.HTTPError as error:
        raise Unavailable("the engine's metrics cannot be read") from error
    return sum(
        round(float(line.rpartition(" ")[2]))
        for line in response.text.splitlines()
        if line.startswith(_COUNTER)
    )


def _told(answer: dict[str, Any]) -> list[str]:
    flagged = sum(sentence["verdict"] != "supported" for sentence in answer["sentences"])
    usage, timings = answer["usage"], answer["timings"]
    return [
        *answer["text"].splitlines(),
        f"({answer['mode']}: {len(answer['sentences'])} sentences, {flagged} flagged;"
        f" {usage['prompt_tokens']} tokens read, {usage['cached_tokens']} from the cache;"
        f" first words after {timings['ttft_ms']:.0f} ms)",
    ]


def _tokens_per_s(answer: dict[str, Any]) -> float:
    seconds = (answer["timings"]["total_ms"] - answer["timings"]["ttft_ms"]) / 1000
    return float(answer["usage"]["completion_tokens"] / seconds) if seconds > 0 else 0.0


def _share(sentences: list[dict[str, Any]], has: Callable[[dict[str, Any]], bool]) -> float:
    return sum(map(has, sentences)) / len(sentences) if sentences else 0.0


def _median(values: list[float]) -> float:
    return statistics.median(values) if values else 0.0
