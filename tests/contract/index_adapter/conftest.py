"""The port VectorIndex on the fake, on our index server, and on a real Qdrant server when
PINCITE_TEST_INDEX_URL (and PINCITE_TEST_INDEX_API_KEY) name one; its collections `test-…` are
deleted afterwards."""

import os
import secrets
from collections.abc import Callable, Iterator

import pytest
from pydantic import SecretStr
from qdrant_client import QdrantClient

from core.adapters.index_qdrant import QdrantIndex
from core.ports.vector_index import VectorIndex
from core.settings import IndexSettings
from tests.fakes.vector_index import FakeVectorIndex
from tests.stack import index_server

REAL_URL = os.environ.get("PINCITE_TEST_INDEX_URL", "")
KINDS = ["fake", "embedded", *(["real"] if REAL_URL else [])]


@pytest.fixture(scope="session")
def embedded_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexSettings]:
    index = index_server(tmp_path_factory.mktemp("index-adapter"))
    index.server.start()
    yield IndexSettings(url=index.url, api_key=SecretStr(index.api_key))
    index.server.stop()


@pytest.fixture
def settings_of(embedded_settings: IndexSettings) -> Callable[[str], IndexSettings]:
    """The settings of a kind of server, with an alias of this test's own."""

    def make(kind: str) -> IndexSettings:
        base = embedded_settings
        if kind == "real":
            key = os.environ.get("PINCITE_TEST_INDEX_API_KEY", "")
            base = IndexSettings(url=REAL_URL, api_key=SecretStr(key))
        alias = f"test-{secrets.token_hex(6)}"
        return base.model_copy(update={"alias": alias, "upsert_points": 3})

    return make


@pytest.fixture(params=KINDS)
def index(
    request: pytest.FixtureRequest, settings_of: Callable[[str], IndexSettings]
) -> Iterator[VectorIndex]:
    if request.param == "fake":
        yield FakeVectorIndex()
        return
    settings = settings_of(request.param)
    adapter = QdrantIndex(settings)
    yield adapter
    adapter.close()
    remove(settings)


def remove(settings: IndexSettings) -> None:
    """Delete what a test made on the server."""
    client = QdrantClient(
        url=settings.url, headers={"api-key": settings.api_key.get_secret_value()}
    )
    for alias in client.get_aliases().aliases:
        if alias.alias_name == settings.alias:
            client.delete_collection(alias.collection_name)
    client.close()
