"""Stored text, pictures, and rectangles of a quote."""

import hashlib

import pytest
from starlette.testclient import TestClient

from core.domain.documents import Accepted
from tests.api_world import World

TEXT = "The pumps are tested yearly.\nA log is kept."


@pytest.fixture
def accepted(world: World) -> Accepted:
    return world.ingest(texts=[TEXT, "Second page."], body=b"%PDF-1.7 pages")


@pytest.fixture
def pages(accepted: Accepted) -> str:
    return f"/v1/documents/{accepted.document_id}/pages"


def test_the_text_that_quotes_are_cut_from(client: TestClient, pages: str) -> None:
    page = client.get(f"{pages}/1").json()
    assert page["text"] == TEXT
    assert (page["num_pages"], page["label"]) == (2, "1")
    assert (page["width"], page["height"]) == (600, 800)
    assert [page["text"][line["start"] : line["end"]] for line in page["lines"]] == TEXT.split("\n")
    assert client.get(f"{pages}/2").json()["text"] == "Second page."


@pytest.mark.parametrize(("page", "status"), [("3", 404), ("0", 422), ("-1", 422), ("x", 422)])
@pytest.mark.parametrize("rest", ["", "/image", "/rects?start=0&end=3"])
def test_pages_that_are_not_there(
    client: TestClient, pages: str, page: str, status: int, rest: str
) -> None:
    assert client.get(f"{pages}/{page}{rest}").status_code == status


def test_pictures_come_in_steps_of_width(client: TestClient, world: World, pages: str) -> None:
    for width, given in ((100, 100), (640, 600), (1049, 1000), (3000, 3000)):
        answer = client.get(f"{pages}/1/image", params={"width": width})
        assert answer.headers["content-type"] == "image/png"
        assert answer.content.startswith(b"\x89PNG")
        assert int.from_bytes(answer.content[16:20], "big") == given
        assert world.renderer.calls[-1][1:] == (1, given)
    for width in (99, 3001):
        assert client.get(f"{pages}/1/image", params={"width": width}).status_code == 422


def test_only_a_picture_of_a_named_version_may_be_kept(client: TestClient, pages: str) -> None:
    version = f"sha256:{hashlib.sha256(b'%PDF-1.7 pages').hexdigest()}"
    pinned = client.get(f"{pages}/1/image", params={"v": version})
    assert pinned.headers["cache-control"] == "private, max-age=3600"
    assert client.get(f"{pages}/1/image").headers["cache-control"] == "private, no-cache"


def test_rectangles_cover_the_quoted_words(client: TestClient, pages: str) -> None:
    start = TEXT.index("tested")
    answer = client.get(f"{pages}/1/rects", params={"start": start, "end": len(TEXT)}).json()
    assert len(answer["rects"]) == 2
    (x0, _, x1, _), (second_x0, _, _, _) = answer["rects"]
    assert 0.1 < x0 < x1 <= 1
    assert second_x0 == 0.1


@pytest.mark.parametrize(
    ("start", "end", "status"), [(5, 5, 400), (6, 5, 400), (-1, 5, 422), (0, 10_000, 400)]
)
def test_rectangles_of_no_text_are_refused(
    client: TestClient, pages: str, start: int, end: int, status: int
) -> None:
    answer = client.get(f"{pages}/1/rects", params={"start": start, "end": end})
    assert answer.status_code == status


def test_a_busy_renderer_says_when_to_come_back(
    client: TestClient, world: World, pages: str
) -> None:
    world.renderer.is_busy = True
    answer = client.get(f"{pages}/1/image")
    assert answer.status_code == 429
    assert answer.headers["retry-after"] == "3"


def test_a_page_of_a_pinned_version_stays_what_it_was(
    client: TestClient, world: World, pages: str
) -> None:
    version = f"sha256:{hashlib.sha256(b'%PDF-1.7 pages').hexdigest()}"
    world.ingest(texts=["Everything is new."], body=b"%PDF-1.7 replaced")
    assert client.get(f"{pages}/1").json()["text"] == "Everything is new."
    assert client.get(f"{pages}/1", params={"v": version}).json()["text"] == TEXT
    assert client.get(f"{pages}/2").status_code == 404
