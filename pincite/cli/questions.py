"""`pincite ask` and `pincite search`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any
from urllib.parse import urljoin

import typer

from pincite.cli.context import open_client
from pincite.cli.output import print_json

Collections = Annotated[
    list[str] | None, typer.Option("--collection", "-c", help="Only this collection; repeatable.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the whole object.")]


class AskMode(StrEnum):
    auto = "auto"
    extractive = "extractive"
    generative = "generative"


Mode = Annotated[
    AskMode | None,
    typer.Option(
        "--mode",
        "-m",
        help="Quotes, or the language model's words with every sentence checked. "
        "Default: as configured.",
    ),
]


def ask(
    question: str,
    collections: Collections = None,
    mode: Mode = None,
    as_json: AsJson = False,
) -> None:
    """Ask the documents; prints what they say with document and page."""
    with open_client() as client:
        answer = client.ask(
            question,
            collections=collections or [],
            mode=None if mode is None else mode.value,
        )
    if as_json:
        print_json(answer)
        return
    typer.echo(format_answer(answer, client.base_url))


def search(
    query: str,
    collections: Collections = None,
    limit: Annotated[int, typer.Option(help="How many passages.", min=1, max=50)] = 8,
    as_json: AsJson = False,
) -> None:
    """The best passages for a query, without an answer."""
    with open_client() as client:
        found = client.search(query, collections=collections or [], limit=limit)
    if as_json:
        print_json(found)
        return
    for rank, passage in enumerate(found["data"], start=1):
        pages = ", ".join(str(page) for page in passage["pages"])
        typer.echo(f"{rank}. {passage['title']}, page {pages}  ({passage['collection']})")
        typer.echo("   " + _shorten(passage["text"], 300))


def format_answer(answer: dict[str, Any], base_url: str) -> str:
    """An answer as text, then where each quote stands and an address that shows it. What a language
    model wrote is followed by the quotes it cites and by what they do not plainly say."""
    if answer["answer_status"] == "not_in_documents":
        return "Not in the documents."
    lines = [answer["text"], ""]
    sources = {source["id"]: source for source in answer["sources"]}
    for citation in answer["citations"]:
        for quoted in citation["sources"]:
            source = sources[quoted["source_id"]]
            pages = ", ".join(str(location["page"]) for location in quoted["locations"])
            lines.append(f"[{citation['n']}] {source['title']}, page {pages}")
            if answer["mode"] == "generative" and quoted["quote"]:
                lines.append(f"    “{' '.join(quoted['quote'].split())}” ({citation['verdict']})")
            lines.append(f"    {urljoin(base_url, source['view_url'])}")
    lines += _doubts(answer)
    if answer["missing"]:
        lines.append("Nothing found on: " + "; ".join(answer["missing"]))
    return "\n".join(lines)


def _doubts(answer: dict[str, Any]) -> list[str]:
    """The sentences of a written answer that the documents do not plainly say."""
    words = {"unsupported": "Not supported by the documents", "weak": "Not plainly supported"}
    return [
        f"{words[sentence['verdict']]}: {answer['text'][sentence['start'] : sentence['end']]}"
        for sentence in answer.get("sentences", [])
        if sentence["verdict"] in words
    ]


def _shorten(text: str, length: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"
