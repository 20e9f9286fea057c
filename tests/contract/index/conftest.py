"""The server under test: ours in a process of its own, or the one PINCITE_TEST_INDEX_URL names.

With PINCITE_TEST_INDEX_URL (and PINCITE_TEST_INDEX_API_KEY, if it wants a key) the same recorded
and parity tests run against a real Qdrant server. Its collections `chunks_v1`, `chunks_v2` and
`parity_*` are deleted.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest
from qdrant_client import QdrantClient

from tests.stack import index_server


@dataclass(frozen=True)
class Target:
    """Where the server is, and whether it is ours."""

    url: str
    api_key: str | None
    is_ours: bool

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.api_key is None else {"api-key": self.api_key}

    def client(self) -> QdrantClient:
        """An unmodified client. The key travels as a header: `api_key=` warns about plain HTTP."""
        return QdrantClient(url=self.url, headers=self.headers)

    def http(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, headers=self.headers, timeout=30)


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    url = os.environ.get("PINCITE_TEST_INDEX_URL")
    if url:
        yield Target(url, os.environ.get("PINCITE_TEST_INDEX_API_KEY"), is_ours=False)
        return
    index = index_server(tmp_path_factory.mktemp("index"))
    index.server.start()
    yield Target(index.url, index.api_key, is_ours=True)
    index.server.stop()


@pytest.fixture(scope="session")
def ours(target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """Our own server even when a real one is under test: for what only ours refuses."""
    if target.is_ours:
        yield target
        return
    index = index_server(tmp_path_factory.mktemp("ours"))
    index.server.start()
    yield Target(index.url, index.api_key, is_ours=True)
    index.server.stop()
