"""Answer objects that quote given places of ingested documents, with exact offsets."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from core.domain.access import Principal
from core.domain.documents import Accepted
from query.services import Asked
from tests.api_world import World
from tests.fakes.answering import MakeAnswer, plain_answer


@dataclass(frozen=True)
class Place:
    """These words on that page of that document."""

    accepted: Accepted
    page: int
    words: str


def quoting(world: World, quotes: Sequence[Sequence[Place]]) -> MakeAnswer:
    """An answer with one paragraph for each quote; a quote may stand on several pages."""

    def make(principal: Principal, asked: Asked) -> dict[str, Any]:
        answer = plain_answer(principal, asked) | {
            "answer_status": "answered",
            "missing": [],
            "text": "",
        }
        answer["citations"], answer["sources"] = [], []
        for number, places in enumerate(quotes, start=1):
            _add(world, principal, answer, number, places)
        return answer

    return make


def _add(
    world: World,
    principal: Principal,
    answer: dict[str, Any],
    number: int,
    places: Sequence[Place],
) -> None:
    document_id = places[0].accepted.document_id
    with world.catalog.snapshot(principal) as snapshot:
        version = snapshot.version(document_id)
    stored = world.artifacts.read_pages(principal, version.sha256, version.parser_fingerprint)
    locations = []
    for place in places:
        page = stored[place.page]
        start = page.text.index(place.words)
        end = start + len(place.words)
        rects = [list(rect) for rect in page.rects(start, end)]
        locations.append({"page": place.page, "start": start, "end": end, "rects": rects})
    quote = "\n".join(place.words for place in places)
    lead = f"{answer['text']}\n\n“" if answer["text"] else "“"
    start, end = len(lead), len(lead) + len(quote)
    answer["text"] = f"{lead}{quote}” [{number}]"
    answer["citations"].append(
        {
            "id": f"c{number}",
            "n": number,
            "start": start,
            "end": end,
            "marker": {"start": end + 2, "end": len(answer["text"])},
            "verdict": "supported",
            "support_score": 1.0,
            "sources": [{"source_id": f"s{number}", "quote": quote, "locations": locations}],
        }
    )
    answer["sources"].append(
        {
            "id": f"s{number}",
            "document_id": document_id,
            "version": f"sha256:{version.sha256}",
            "title": version.title,
            "collection": version.collection,
            "chunk_id": "chunk",
            "pages": [place.page for place in places],
            "page_size": {},
            "uri": f"s3://{version.bucket}/{version.key}",
            "view_url": (
                f"/view/{document_id}?v=sha256:{version.sha256}&answer={answer['id']}"
                f"&cite=c{number}&page={places[0].page}"
            ),
        }
    )
