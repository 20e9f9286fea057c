"""The port's implementations under test: the fake, and the S3 adapter on a real SeaweedFS."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.adapters.object_store_s3 import S3ObjectStore
from core.domain.access import Principal
from core.ports.object_store import ObjectStore
from core.settings import ObjectsSettings
from tests import stack
from tests.fakes.object_store import FakeObjectStore

BUCKET, OTHER_BUCKET, ARTIFACTS = "documents", "others", "pincite-artifacts"
TENANT_IDS = {BUCKET: "ten_a", OTHER_BUCKET: "ten_b"}


def settings_of(objects: stack.Objects) -> ObjectsSettings:
    return ObjectsSettings(
        endpoint=objects.endpoint,
        access_key=objects.access_key,
        secret_key=objects.secret_key,  # type: ignore[arg-type]  # pydantic wraps it
    )


@pytest.fixture(scope="session")
def seaweedfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[stack.Objects]:
    objects = stack.seaweedfs(
        tmp_path_factory.mktemp("seaweedfs"), [BUCKET, OTHER_BUCKET, ARTIFACTS]
    )
    objects.server.start()
    maker = S3ObjectStore(settings_of(objects), {})
    for bucket in (BUCKET, OTHER_BUCKET, ARTIFACTS):
        maker.ensure_bucket(bucket)  # the server makes them too, a moment after it answers
    yield objects
    objects.server.kill()


@pytest.fixture(scope="session")
def s3_settings(seaweedfs: stack.Objects) -> ObjectsSettings:
    return settings_of(seaweedfs)


@pytest.fixture(params=["fake", "seaweedfs"])
def store(request: pytest.FixtureRequest, s3_settings: ObjectsSettings) -> Iterator[ObjectStore]:
    """An empty store with two documents buckets and one for artifacts."""
    if request.param == "fake":
        yield FakeObjectStore(TENANT_IDS, ARTIFACTS)
        return
    s3 = S3ObjectStore(s3_settings, TENANT_IDS)
    yield s3
    for tenant_id, bucket in (("ten_a", BUCKET), ("ten_b", OTHER_BUCKET)):
        s3.delete_prefix(Principal.system(tenant_id, "test"), bucket, "")
        s3.delete_prefix(Principal.system(tenant_id, "test"), ARTIFACTS, f"{tenant_id}/")


@pytest.fixture
def owner() -> Principal:
    return Principal.system("ten_a", "test")


@pytest.fixture
def stranger() -> Principal:
    return Principal.system("ten_b", "test")


@pytest.fixture
def target(tmp_path: Path) -> Callable[[], Path]:
    return lambda: tmp_path / "downloaded"
