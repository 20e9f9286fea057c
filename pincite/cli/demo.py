"""`pincite demo`: the sample bucket, ingested and asked, from nothing to cited answers."""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from core.domain.access import Principal
from core.errors import InvalidInput, NotFound, TimedOut
from core.settings import Settings, load_settings
from pincite.cli.context import api_url
from pincite.cli.demo_written import Written, ask_in_words, completed_requests
from pincite.cli.stack import login_url, serve_until_stopped, start_stack
from pincite.client import Client

if TYPE_CHECKING:
    from pincite.supervisor.supervisor import Supervisor

_MIN_RIGHT_PAGES = 21
_MIN_ABSTAINED = 9
_INGEST_TIMEOUT_S = 300.0
_NUM_WRITTEN = 10
_FINAL = {"ready", "partial", "needs_ocr", "needs_password", "unsupported", "corrupt", "too_large",
          "quarantined"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Question:
    """One line of examples/questions.jsonl; document, page and quote only when answerable."""

    id: str
    text: str
    is_answerable: bool
    document: str = ""
    page: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    question: Question
    is_right: bool
    seconds: float
    has_evidence: bool


def demo(
    leave: Annotated[bool, typer.Option("--exit", help="End after the summary.")] = False,
) -> None:
    """Start the stack, ingest the sample bucket, ask the sample questions, print cited answers.

    Some are asked again for an answer in the engine's own words. Ends with status 0 only when
    enough answers cite the right page, enough unanswerable questions are refused, and every
    citation in what the engine wrote stands on its page. On a terminal it keeps serving afterwards.
    """
    examples = _examples_dir()
    questions = load_questions(examples / "questions.jsonl")
    began = time.monotonic()
    supervisor = start_stack(load_settings(), show_progress=True)
    try:
        up_s = time.monotonic() - began
        with Client(
            api_url(supervisor.settings), supervisor.secrets.admin_key, timeout_s=60.0
        ) as client:
            documents, ingest_s = _ingest(supervisor.settings, client, examples)
            outcomes = [_ask(client, question) for question in questions]
            # Nothing is written where the documents do not answer.
            asked = [o.question.text for o in outcomes if o.is_right and o.has_evidence]
            written = ask_in_words(
                client,
                partial(completed_requests, supervisor.settings.generator),
                asked[:_NUM_WRITTEN],
                _citation_lines,
            )
        is_good = _summarise(
            outcomes, written, documents, up_s=up_s, ingest_s=ingest_s, began=began
        )
    except BaseException:
        supervisor.stop()
        raise
    _finish(supervisor, is_good=is_good, leave=leave)


def _finish(supervisor: Supervisor, *, is_good: bool, leave: bool) -> None:
    is_batch = leave or os.environ.get("CI", "").lower() in ("1", "true")
    if is_batch or not sys.stdout.isatty():
        supervisor.stop()
    else:
        typer.echo(f"\nStill serving, Ctrl-C stops it: {login_url(supervisor.settings)}")
        serve_until_stopped(supervisor)
    raise typer.Exit(0 if is_good else 1)


def load_questions(path: Path) -> list[Question]:
    """Raises InvalidInput naming the broken line."""
    questions = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            data = json.loads(line)
            questions.append(
                Question(
                    id=data["id"],
                    text=data["question"],
                    is_answerable=data["answerable"],
                    document=data.get("document", ""),
                    page=data.get("page", 0),
                )
            )
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInput(f"{path.name} line {number} is broken: {error}") from error
    return questions


def _examples_dir() -> Path:
    directory = Path(__file__).resolve().parents[2] / "examples"
    if not (directory / "render.py").is_file():
        raise NotFound(
            "the sample documents are not here", hint="run the demo from a clone of the repository"
        )
    return directory


def _ingest(
    settings: Settings, client: Client, examples: Path
) -> tuple[list[dict[str, Any]], float]:
    """Put the rendered samples into the bucket as any S3 client would; wait until all are final."""
    from core.factory import Adapters

    sys.path.insert(0, str(examples.parent))  # examples are no part of the distribution
    from examples.render import render_all

    bucket = next(iter(settings.objects.buckets))
    with (
        tempfile.TemporaryDirectory(prefix="pincite-demo-") as scratch,
        closing(Adapters(settings)) as adapters,
    ):
        root = Path(scratch)
        keys = {path.relative_to(root).as_posix(): path for path in render_all(root)}
        began = time.monotonic()
        principal = Principal.system(adapters.tenant_ids[bucket], "demo")
        for key, path in keys.items():
            adapters.object_store.put(
                principal, bucket, key, path.read_bytes(), content_type="application/pdf"
            )
        typer.echo(f"put {len(keys)} documents into the bucket '{bucket}'")
    documents = _wait_final(client, set(keys))
    seconds = time.monotonic() - began
    for document in sorted(documents, key=lambda d: str(d["key"])):
        pages, chunks = document["pages_total"] or 0, document["num_chunks"] or 0
        typer.echo(f"  {document['status']:<10} {document['key']}  {pages} pages, {chunks} chunks")
    return documents, seconds


def _wait_final(client: Client, keys: set[str]) -> list[dict[str, Any]]:
    deadline = time.monotonic() + _INGEST_TIMEOUT_S
    while True:
        found = [d for d in client.documents() if d["key"] in keys]
        if len(found) == len(keys) and all(d["status"] in _FINAL for d in found):
            return found
        if time.monotonic() > deadline:
            states = ", ".join(f"{d['key']}: {d['status']}" for d in found)
            raise TimedOut(f"the samples were not ingested in time ({states})")
        time.sleep(0.3)


def _ask(client: Client, question: Question) -> Outcome:
    began = time.monotonic()
    answer = client.ask(question.text)
    seconds = time.monotonic() - began
    is_right = (
        _cites(client, answer, question)
        if question.is_answerable
        else answer["answer_status"] == "not_in_documents"
    )
    typer.echo(f"\n{question.id}  {question.text}")
    for line in _answer_lines(answer):
        typer.echo(f"     {line}")
    typer.echo(f"     {'right' if is_right else 'WRONG'}, {seconds * 1000:.0f} ms")
    return Outcome(question, is_right, seconds, has_evidence=bool(answer["citations"]))


def _answer_lines(answer: dict[str, Any]) -> list[str]:
    if not answer["citations"]:
        return [answer["answer_status"].replace("_", " ")]
    return _citation_lines(answer)


def _citation_lines(answer: dict[str, Any]) -> list[str]:
    sources = {source["id"]: source for source in answer["sources"]}
    lines = []
    for citation in answer["citations"]:
        for quoted in citation["sources"]:
            source = sources[quoted["source_id"]]
            pages = "-".join(str(location["page"]) for location in quoted["locations"])
            lines.append(f"[{citation['n']}] “{quoted['quote']}”")
            lines.append(f"    {source['title']} ({source['uri']}), page {pages}")
    return lines


def _cites(client: Client, answer: dict[str, Any], question: Question) -> bool:
    """Whether a citation stands on the expected page, with words that are on that page."""
    sources = {source["id"]: source for source in answer["sources"]}
    for citation in answer["citations"]:
        for quoted in citation["sources"]:
            source = sources[quoted["source_id"]]
            if not source["uri"].endswith("/" + question.document):
                continue
            for location in quoted["locations"]:
                if location["page"] == question.page:
                    text = client.page(source["document_id"], location["page"])["text"]
                    if text[location["start"] : location["end"]] in quoted["quote"]:
                        return True
    return False


def _summarise(
    outcomes: list[Outcome],
    written: Written,
    documents: list[dict[str, Any]],
    *,
    up_s: float,
    ingest_s: float,
    began: float,
) -> bool:
    answerable = [o for o in outcomes if o.question.is_answerable]
    others = [o for o in outcomes if not o.question.is_answerable]
    right = sum(o.is_right for o in answerable)
    abstained = sum(o.is_right for o in others)
    pages = sum(d["pages_total"] or 0 for d in documents)
    median_ms = statistics.median(o.seconds for o in outcomes) * 1000
    is_good = right >= _MIN_RIGHT_PAGES and abstained >= _MIN_ABSTAINED and not written.problems
    setup = os.environ.get("SETUP_SECONDS")
    lines = [
        "",
        "summary",
        f"  right page, verbatim quote:   {right} of {len(answerable)}"
        f"  (needed {_MIN_RIGHT_PAGES})",
        f"  not in documents, said so:    {abstained} of {len(others)}  (needed {_MIN_ABSTAINED})",
        f"  answer time, median:          {median_ms:.0f} ms",
        *written.lines(),
        f"  ingest:                       {len(documents)} documents, {pages} pages,"
        f" {ingest_s:.1f} s",
        f"  stack ready after:            {up_s:.1f} s",
        f"  set-up time:                  {setup} s"
        if setup
        else "  set-up time:                  -",
        f"  demo time (without set-up):   {time.monotonic() - began:.1f} s",
        f"  verdict:                      {'passed' if is_good else 'FAILED'}",
    ]
    typer.echo("\n".join(lines))
    return is_good
