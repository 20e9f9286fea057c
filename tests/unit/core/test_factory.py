"""Adapters are made once, lazily, and say what is not configured."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Barrier, Thread

import pytest

from core.errors import NotFound, SettingsError
from core.factory import Adapters
from core.settings import Settings
from tests.stack import ROOT


@pytest.fixture
def adapters(tmp_path: Path) -> Iterator[Adapters]:
    made = Adapters(Settings(data_dir=tmp_path))
    yield made
    made.close()


@pytest.mark.parametrize(
    ("name", "setting"),
    [("vector_index", "index.url"), ("embedder", "models.url"), ("job_queue", "broker.url")],
)
def test_a_missing_address_is_named(adapters: Adapters, name: str, setting: str) -> None:
    with pytest.raises(SettingsError, match=setting) as raised:
        getattr(adapters, name)
    assert raised.value.hint is not None
    assert "pincite up" in raised.value.hint


def test_without_an_address_there_is_no_generator(adapters: Adapters, tmp_path: Path) -> None:
    assert adapters.generator is None
    generator = {"url": "http://127.0.0.1:1/v1"}
    other = Adapters(Settings.model_validate({"data_dir": tmp_path, "generator": generator}))
    assert other.generator is not None
    assert other.generator is other.generator
    other.close()


def test_a_missing_tokenizer_is_named(adapters: Adapters) -> None:
    with pytest.raises(NotFound, match="tokenizer"):
        _ = adapters.token_counter


def test_buckets_belong_to_the_tenants_that_the_settings_name(tmp_path: Path) -> None:
    buckets = {"documents": "default", "more": "default", "theirs": "other"}
    adapters = Adapters(
        Settings.model_validate({"data_dir": tmp_path, "objects": {"buckets": buckets}})
    )
    adapters.catalog.migrate()
    found = adapters.tenant_ids
    assert found["documents"] == found["more"] != found["theirs"]
    assert set(adapters.catalog.operations.tenants()) == set(found.values())
    adapters.close()


def test_threads_share_one_of_each(adapters: Adapters) -> None:
    adapters.catalog.migrate()
    barrier = Barrier(6)
    found: list[object] = []

    def ask() -> None:
        barrier.wait()
        found.append(adapters.object_store)

    threads = [Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(store) for store in found}) == 1
    assert adapters.artifacts.bucket == adapters.settings.objects.artifacts_bucket


def test_closing_ends_what_was_made_and_allows_a_new_start(adapters: Adapters) -> None:
    adapters.catalog.migrate()
    first = adapters.catalog
    adapters.close()
    adapters.catalog.check()
    assert adapters.catalog is not first


def test_importing_the_factory_imports_no_vendor() -> None:
    code = (
        "import core.factory, sys;"
        "print([name for name in ('boto3', 'celery', 'sqlalchemy', 'qdrant_client', 'torch')"
        " if name in sys.modules])"
    )
    finished = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert finished.stdout.strip() == "[]"
