"""The client of the command line against the served API."""

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from core.domain.access import Scope
from core.errors import (
    Conflict,
    DocumentTooLarge,
    InternalError,
    InvalidInput,
    NotAuthenticated,
    NotFound,
    NotPermitted,
    Overloaded,
    PinciteError,
    TimedOut,
    Unavailable,
)
from pincite.client import Client
from tests.api_world import World
from tests.serving import Served, serving


@pytest.fixture
def client(world: World, served: Served) -> Iterator[Client]:
    with Client(served.url, world.key()) as found:
        yield found


def test_every_call_reaches_its_route(client: Client, world: World, tmp_path: Path) -> None:
    file = tmp_path / "Prüfung.pdf"
    file.write_bytes(b"%PDF-1.7 " + b"x" * 200_000)
    accepted = client.add_document(file, collection="hr")
    assert accepted["key"] == "hr/Prüfung.pdf"
    assert not client.add_document(file, collection="hr")["is_new"]
    document_id, job_id = accepted["document_id"], accepted["job_id"]
    assert client.document(document_id)["size_bytes"] == 200_009
    assert [found["document_id"] for found in client.documents(collection="hr")] == [document_id]
    assert [found["job_id"] for found in client.jobs()] == [job_id]
    assert client.cancel_job(job_id)["job_id"] == job_id
    assert client.retry_job(job_id)["status"] == client.job(job_id)["status"] == "queued"
    assert client.ingest_state()["queue_depth"] == 1
    assert client.about()["name"] == "Pincite"
    client.delete_document(document_id)
    assert list(client.documents()) == []


def test_asking_and_searching(client: Client, world: World) -> None:
    world.ingest(texts=["The pumps are tested yearly."])
    (found,) = client.search("pumps tested", collections=["hr"], limit=3)["data"]
    assert client.page(found["document_id"], found["pages"][0])["text"] == found["text"]
    assert client.search("pumps", collections=["plant"])["data"] == []
    assert client.ask("How often?", collections=["hr"])["object"] == "pincite.answer"


def test_listings_are_read_to_their_end(client: Client, world: World) -> None:
    ids = {world.announce(f"hr/{n}.pdf", b"%PDF" + bytes([n])).document_id for n in range(60)}
    assert {found["document_id"] for found in client.documents()} == ids


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda client: client.document("doc_" + "0" * 32), NotFound),
        (lambda client: client.document("../about"), NotFound),
        (lambda client: client.document("x?y#z"), NotFound),
        (lambda client: client.document(""), NotFound),
        (lambda client: client.ask(""), InvalidInput),
        (lambda client: client.search("x", limit=0), InvalidInput),
    ],
)
def test_problems_come_back_as_our_errors(
    client: Client, call: Callable[[Client], object], kind: type[PinciteError]
) -> None:
    with pytest.raises(kind) as caught:
        call(client)
    assert caught.value.message
    assert caught.value.context["request_id"]


def test_each_refusal_is_its_own_error(make_world: Callable[..., World], tmp_path: Path) -> None:
    world = make_world(api={"max_upload_bytes": 1000, "max_answers": 1})
    small, large = tmp_path / "small.pdf", tmp_path / "large.pdf"
    small.write_bytes(b"x")
    large.write_bytes(b"x" * 1_000_000)
    accepted = world.ingest()
    with serving(world.services) as served:
        with Client(served.url, "wrong") as client, pytest.raises(NotAuthenticated):
            client.ask("x")
        with Client(served.url, world.key(Scope.SEARCH)) as client, pytest.raises(NotPermitted):
            client.add_document(small)
        with Client(served.url, world.key()) as client:
            with pytest.raises(DocumentTooLarge) as too_large:
                client.add_document(large)
            assert too_large.value.hint
            with pytest.raises(Conflict):
                client.retry_job(accepted.job_id)
            slots = served.server.config.app.state.answer_slots  # type: ignore[union-attr]
            with slots.take(), pytest.raises(Overloaded) as overloaded:
                client.ask("x")
            assert overloaded.value.retry_after_s == 1.0
            world.store.is_down = True
            with pytest.raises(Unavailable):
                client.add_document(small)


def test_nobody_there(free_port: Callable[[], int]) -> None:
    with (
        Client(f"http://127.0.0.1:{free_port()}", "key") as client,
        pytest.raises(Unavailable, match="nobody answers"),
    ):
        client.about()


def test_somebody_else_there(world: World, served: Served) -> None:
    with Client(f"{served.url}/static", "key") as client, pytest.raises(NotFound):
        client.about()
    with Client(served.url, "key") as client, pytest.raises(InternalError, match="not Pincite"):
        client._call("GET", "/")


def test_no_answer_in_time(world: World, served: Served) -> None:
    import threading

    world.answers.gate = threading.Event()
    with Client(served.url, world.key(), timeout_s=0.05) as client, pytest.raises(TimedOut):
        client.ask("x")
    world.answers.gate.set()


def test_proxies_of_the_environment_are_not_used(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with Client(client.base_url, "x") as direct:
        assert direct.about()["name"] == "Pincite"
    assert httpx.__version__
