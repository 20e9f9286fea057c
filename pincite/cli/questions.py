"""`pincite ask` and `pincite search`."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urljoin

import typer

from pincite.cli.context import open_client
from pincite.cli.output import print_json

Collections = Annotated[
    list[str] | None, typer.Option("--collection", "-c", help="Only this collection; repeatable.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the whole object.")]


def ask(question: str, collections: Collections = None, as_json: AsJson = False) -> None:
    """Ask the documents; prints verbatim quotes with document and page."""
    with open_client() as client:
        answer = client.ask(question, collections=collections or [])
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
    """An answer as text: the quotes, then where each stands and an address that shows it."""
    if answer["answer_status"] == "not_in_documents":
        return "Not in the documents."
    lines = [answer["text"], ""]
    sources = {source["id"]: source for source in answer["sources"]}
    for citation in answer["citations"]:
        for quoted in citation["sources"]:
            source = sources[quoted["source_id"]]
            pages = ", ".join(str(location["page"]) for location in quoted["locations"])
            lines.append(f"[{citation['n']}] {source['title']}, page {pages}")
            lines.append(f"    {urljoin(base_url, source['view_url'])}")
    if answer["missing"]:
        lines.append("Nothing found on: " + "; ".join(answer["missing"]))
    return "\n".join(lines)


def _shorten(text: str, length: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"
