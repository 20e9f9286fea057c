"""One document in a store, and the renderers under test: the fake, and real parser children."""

import hashlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from core.adapters.page_renderer import SubprocessPageRenderer
from core.artifacts import Artifacts
from core.domain.access import Principal
from core.domain.documents import ActiveVersion
from core.domain.pages import Page
from core.ports.page_renderer import PageRenderer
from core.settings import Settings
from tests.builders_pdf import Sheet, pdf
from tests.fakes.object_store import FakeObjectStore
from tests.fakes.renderer import FakePageRenderer
from tests.pdf_reading import pages_of

ARTIFACTS = "pincite-artifacts"
PARSER = "parser1"
ILL_CHILD = (sys.executable, "-P", str(Path(__file__).parents[2] / "ill_child.py"))


@dataclass
class World:
    """A stored version of a document of some pages, its bytes and its parsed pages."""

    store: FakeObjectStore
    artifacts: Artifacts
    principal: Principal
    version: ActiveVersion
    pages: list[Page]

    @classmethod
    def holding(cls, data: bytes, pages: list[Page], page_count: int) -> "World":
        store = FakeObjectStore({"documents": "ten_a"}, ARTIFACTS)
        artifacts = Artifacts(store, ARTIFACTS)
        principal = Principal.system("ten_a", "test")
        sha256 = hashlib.sha256(data).hexdigest()
        store.put(principal, ARTIFACTS, artifacts.original_key(principal, sha256), data)
        if pages:
            artifacts.write_pages(principal, sha256, PARSER, pages)
        version = ActiveVersion(
            generation_id="generation",
            document_id="doc_1",
            version_seq=1,
            sha256=sha256,
            title="Manual",
            collection="default",
            bucket="documents",
            key="default/manual.pdf",
            page_count=page_count,
            etag="etag",
            parser_fingerprint=PARSER,
        )
        return cls(store, artifacts, principal, version, pages)


@pytest.fixture
def world(tmp_path: Path) -> World:
    sheet = Sheet().lines(72, 700, ["The pump must be stopped before the", "cover is removed."])
    data = pdf(
        [sheet, Sheet().text(72, 600, "Second page"), Sheet(rotate=90).text(72, 500, "Third")]
    )
    return World.holding(data, pages_of(data, tmp_path), 3)


MakeRenderer = Callable[..., SubprocessPageRenderer]


@pytest.fixture
def make_renderer() -> Iterator[MakeRenderer]:
    """Makes renderers of parser children that are closed at the end."""
    made: list[SubprocessPageRenderer] = []

    def make(
        world: World, settings: Settings | None = None, **options: object
    ) -> SubprocessPageRenderer:
        renderer = SubprocessPageRenderer(
            settings or Settings(),
            world.store,
            world.artifacts,
            **options,  # type: ignore[arg-type]
        )
        made.append(renderer)
        return renderer

    yield make
    for renderer in made:
        renderer.close()


@pytest.fixture(params=["fake", "children"])
def renderer(
    request: pytest.FixtureRequest, world: World, make_renderer: MakeRenderer
) -> PageRenderer:
    if request.param == "fake":
        return FakePageRenderer(world.artifacts)
    return make_renderer(world)
