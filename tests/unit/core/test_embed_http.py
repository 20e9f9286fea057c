"""HttpEmbedder against servers that answer what a test tells them to."""

import json
import math
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from core.adapters.embed_http import HttpEmbedder
from core.errors import InvalidInput, ModelsUnavailable, Overloaded, PinciteError
from core.settings import ModelsSettings

TEI_INFO = {
    "model_id": "BAAI/bge-small-en-v1.5",
    "model_sha": "5c38ec7",
    "model_dtype": "float16",
    "model_type": {"embedding": {"pooling": "cls"}},
    "max_input_length": 512,
    "max_client_batch_size": 4,
    "version": "1.8.0",
}
OUR_INFO = {
    "model_id": "minilm",
    "max_input_length": 256,
    "max_client_batch_size": 32,
    "pincite": {"fingerprint": "abc", "dimension": 2, "prompts": []},
}
Handler = Callable[[httpx.Request], httpx.Response]


class Server:
    """Answers `/info` with `info` and `/embed` with what `embed` makes of the request."""

    def __init__(self, info: dict[str, Any] = OUR_INFO) -> None:
        self.info = info
        self.requests: list[httpx.Request] = []
        self.embed: Handler = self.unit_vectors
        self.waits: list[float] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if request.url.path == "/info":
            return httpx.Response(200, json=self.info)
        return self.embed(request)

    def unit_vectors(self, request: httpx.Request) -> httpx.Response:
        """Each text's length as an angle."""
        angles = [float(len(text)) for text in json.loads(request.content)["inputs"]]
        return httpx.Response(200, json=[[math.cos(a), math.sin(a)] for a in angles])

    def embedder(self, **settings: Any) -> HttpEmbedder:
        return HttpEmbedder(
            ModelsSettings(url="http://models.test", **settings),
            transport=httpx.MockTransport(self),
            sleep=self.waits.append,
        )

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(r.content) for r in self.requests if r.url.path == "/embed"]


@pytest.fixture
def server() -> Server:
    return Server()


def answer(status: int = 200, **arguments: Any) -> Handler:
    return lambda request: httpx.Response(status, **arguments)


def test_info_is_asked_once(server: Server) -> None:
    embedder = server.embedder()
    assert embedder.info() == embedder.info()
    assert (embedder.info().fingerprint, embedder.info().dimension) == ("abc", 2)
    assert embedder.info().max_tokens == 256
    assert len(server.requests) == 1


def test_a_tei_server_tells_less_and_is_probed(server: Server) -> None:
    server.info = TEI_INFO
    info = server.embedder().info()
    assert (info.model_id, info.dimension, info.max_tokens) == ("BAAI/bge-small-en-v1.5", 2, 512)
    assert len(info.fingerprint) == 64
    server.info = {**TEI_INFO, "model_sha": "another"}
    assert server.embedder().info().fingerprint != info.fingerprint
    server.info = {**TEI_INFO, "version": "1.9.0"}
    assert server.embedder().info().fingerprint == info.fingerprint


def test_requests_have_teis_shape(server: Server) -> None:
    embedder = server.embedder(api_key=SecretStr("key"))
    embedder.embed_questions(["why?"])
    embedder.embed_passages(["because", "so"])
    assert server.bodies == [
        {"inputs": ["why?"], "normalize": True, "truncate": False},
        {"inputs": ["because", "so"], "normalize": True, "truncate": False},
    ]
    levels = [r.headers.get("X-Pincite-Priority") for r in server.requests[1:]]
    assert levels == ["question", "passage"]
    assert {r.headers["Authorization"] for r in server.requests} == {"Bearer key"}


def test_prompts_are_named_when_the_model_has_them(server: Server) -> None:
    prompts = {"fingerprint": "abc", "dimension": 2, "prompts": ["query", "document"]}
    server.info = {**OUR_INFO, "pincite": prompts}
    embedder = server.embedder()
    embedder.embed_questions(["why?"])
    embedder.embed_passages(["because"])
    assert [body["prompt_name"] for body in server.bodies] == ["query", "document"]


def test_many_texts_are_split_and_keep_their_order(server: Server) -> None:
    server.info = {**OUR_INFO, "max_client_batch_size": 4}
    texts = ["x" * n for n in range(1, 11)]
    vectors = server.embedder().embed_passages(texts)
    assert [len(body["inputs"]) for body in server.bodies] == [4, 4, 2]
    assert vectors == [[math.cos(n), math.sin(n)] for n in range(1, 11)]


def test_no_texts_are_no_request(server: Server) -> None:
    embedder = server.embedder()
    embedder.info()
    assert embedder.embed_passages([]) == []
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_server_that_starts_is_asked_again(server: Server, status: int) -> None:
    answers = [httpx.Response(status), httpx.Response(status)]
    server.embed = lambda request: answers.pop() if answers else server.unit_vectors(request)
    assert len(server.embedder().embed_questions(["why?"])) == 1
    assert len(server.waits) == 2


def test_a_broken_connection_is_tried_again_then_unavailable(server: Server) -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    server.embed = refuse
    with pytest.raises(ModelsUnavailable, match="ConnectError"):
        server.embedder().embed_questions(["why?"])
    assert len(server.bodies) == 3


def test_a_timeout_is_not_repeated(server: Server) -> None:
    def wait(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadTimeout("slow", request=request)

    server.embed = wait
    with pytest.raises(ModelsUnavailable, match="ReadTimeout"):
        server.embedder().embed_passages(["long"])
    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    ("status", "raised"),
    [
        (400, InvalidInput),
        (401, ModelsUnavailable),
        (403, ModelsUnavailable),
        (404, ModelsUnavailable),
        (413, InvalidInput),
        (422, InvalidInput),
        (424, ModelsUnavailable),
        (429, Overloaded),
        (500, ModelsUnavailable),
    ],
)
def test_refusals(server: Server, status: int, raised: type[PinciteError]) -> None:
    server.embed = answer(status, json={"error": "the reason", "error_type": "Validation"})
    with pytest.raises(raised):
        server.embedder().embed_passages(["text"])
    assert len(server.bodies) == 1
    assert server.waits == []


@pytest.mark.parametrize(
    ("header", "seconds"), [({"Retry-After": "9"}, 9.0), ({}, 1.0), ({"Retry-After": "soon"}, 1.0)]
)
def test_overload_says_when_to_come_back(
    server: Server, header: dict[str, str], seconds: float
) -> None:
    server.embed = answer(429, headers=header)
    with pytest.raises(Overloaded) as caught:
        server.embedder().embed_passages(["text"])
    assert caught.value.retry_after_s == seconds


@pytest.mark.parametrize(
    "vectors",
    [
        [],
        [[1.0, 0.0], [0.0, 1.0]],
        {"vectors": []},
        ["text"],
        [[float("nan"), 1.0]],
        [[0.0, 0.0]],
        [[3.0, 4.0]],
        [[1.0, 0.0, 0.0]],
        [["1", "0"]],
    ],
    ids=["none", "two", "object", "text", "nan", "zero", "long", "dimension", "strings"],
)
def test_what_is_not_a_unit_vector_never_gets_through(server: Server, vectors: object) -> None:
    server.embed = answer(content=json.dumps(vectors))
    with pytest.raises(ModelsUnavailable):
        server.embedder().embed_passages(["text"])


@pytest.mark.parametrize(
    "info", [{}, {"model_id": "x"}, {"model_id": "x", "max_input_length": "many"}], ids=str
)
def test_what_is_no_embedding_server_says_so(server: Server, info: dict[str, Any]) -> None:
    server.info = info
    with pytest.raises(ModelsUnavailable, match="/info is not what"):
        server.embedder().info()


def test_an_answer_that_is_no_json_says_so(server: Server) -> None:
    server.embed = answer(text="<html>")
    with pytest.raises(ModelsUnavailable, match="not JSON"):
        server.embedder().embed_passages(["text"])


def test_another_model_behind_the_same_address_is_noticed(server: Server) -> None:
    def embed(request: httpx.Request) -> httpx.Response:
        response = server.unit_vectors(request)
        response.headers["X-Pincite-Model"] = server.info["pincite"]["fingerprint"]
        return response

    server.embed = embed
    embedder = server.embedder()
    assert embedder.embed_passages(["text"])
    server.info = {**OUR_INFO, "pincite": {"fingerprint": "new", "dimension": 2}}
    with pytest.raises(ModelsUnavailable, match="another model"):
        embedder.embed_passages(["text"])
    assert embedder.info().fingerprint == "new"


def test_errors_never_carry_document_text(server: Server) -> None:
    server.embed = answer(500, text="secret passage")
    with pytest.raises(ModelsUnavailable) as caught:
        server.embedder().embed_passages(["secret passage"])
    assert "secret" not in caught.value.message
