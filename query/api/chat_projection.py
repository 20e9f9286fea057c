"""An answer's events as chat completions: chunks as they happen, or the whole."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from query.http.worker_events import Event

DONE = b"data: [DONE]\n\n"


@dataclass(slots=True)
class ChatProjection:
    """The state of one response. `base_url` makes `view_url` absolute (without a slash at the end).

    created: seconds since 1970. includes_usage: a last chunk with token counts.
    includes_answer: the whole answer object as `pincite` on the message or the last chunk.
    """

    model: str
    created: int
    base_url: str
    includes_usage: bool = False
    includes_answer: bool = False
    _id: str = ""
    _sources: dict[str, dict[str, Any]] = field(default_factory=dict)

    def chunks(self, event: Event) -> Iterator[dict[str, Any]]:
        """What a streaming client is sent for an event; nothing for most."""
        match event["type"]:
            case "answer.created":
                self._id = _completion_id(event["id"])
                yield self._chunk({"role": "assistant", "content": ""})
            case "retrieval.sources":
                self._sources = {source["id"]: source for source in event["sources"]}
            case "text.delta" if event["delta"]:
                yield self._chunk({"content": event["delta"]})
            case "citation.added":
                answer_id = self._id.removeprefix(_ID_PREFIX)
                found = [
                    annotation(event["citation"], quoted, self._sources, self.base_url, answer_id)
                    for quoted in event["citation"]["sources"]
                ]
                yield self._chunk({"annotations": found})
            case "answer.completed":
                yield from self._last(event["answer"])
            case _:
                return

    def completion(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """The whole response."""
        sources = {source["id"]: source for source in answer["sources"]}
        message: dict[str, Any] = {
            "role": "assistant",
            "content": answer["text"],
            "refusal": None,
            "annotations": [
                annotation(citation, quoted, sources, self.base_url, answer["id"])
                for citation in answer["citations"]
                for quoted in citation["sources"]
            ],
        }
        if self.includes_answer:
            message["pincite"] = dict(answer)
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        return {
            "id": _completion_id(answer["id"]),
            "object": "chat.completion",
            "created": self.created,
            "model": self.model,
            "choices": [choice],
            "usage": usage(answer),
        }

    def _last(self, answer: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        last = self._chunk({}, finish_reason="stop")
        if self.includes_answer:
            last["pincite"] = dict(answer)
        yield last
        if self.includes_usage:
            yield {**self._head(), "choices": [], "usage": usage(answer)}

    def _chunk(self, delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
        head = self._head() | {"choices": [choice]}
        return head | {"usage": None} if self.includes_usage else head

    def _head(self) -> dict[str, Any]:
        return {
            "id": self._id,
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
        }


def annotation(
    citation: Mapping[str, Any],
    quoted: Mapping[str, Any],
    sources: Mapping[str, Mapping[str, Any]],
    base_url: str,
    answer_id: str,
) -> dict[str, Any]:
    """A `url_citation` of the text that a citation supports; its URL opens the quoted page. Beyond
    OpenAI's fields it has the quote, the page and the verdict."""
    source = sources.get(quoted["source_id"], {})
    pages = [location["page"] for location in quoted["locations"]]
    url = _page_url(source.get("view_url", ""), citation["id"], answer_id, pages)
    return {
        "type": "url_citation",
        "url_citation": {
            "start_index": citation["start"],
            "end_index": citation["end"],
            "url": url if url.startswith("http") or not url else base_url + url,
            "title": source.get("title", ""),
            "quote": quoted["quote"],
            "page": pages[0] if pages else None,
            "verdict": citation["verdict"],
        },
    }


def usage(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Token counts in OpenAI's words; an answer of quotes alone used none."""
    spent = answer["usage"]
    return {
        "prompt_tokens": spent["prompt_tokens"],
        "completion_tokens": spent["completion_tokens"],
        "total_tokens": spent["prompt_tokens"] + spent["completion_tokens"],
        "prompt_tokens_details": {"cached_tokens": spent["cached_tokens"]},
    }


def sse(data: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()


_ID_PREFIX = "chatcmpl-"


def _completion_id(answer_id: str) -> str:
    return _ID_PREFIX + answer_id


def _page_url(view_url: str, citation_id: str, answer_id: str, pages: list[int]) -> str:
    """The source's URL, opened at this citation; sources know of their first one at most."""
    if not view_url:
        return ""
    plain = view_url.partition("&answer=")[0].partition("&page=")[0]
    page = f"&page={pages[0]}" if pages else ""
    return f"{plain}&answer={answer_id}&cite={citation_id}{page}"
