"""A pipeline of fakes around a real catalog."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pipeline_harness import Pipeline, make_pipeline


@pytest.fixture
def pipeline(tmp_path: Path) -> Iterator[Pipeline]:
    made = make_pipeline(
        tmp_path,
        parser={"pages_per_part": 4},
        worker={"embed_chunks_per_part": 16, "index_chunks_per_part": 32},
    )
    yield made
    made.catalog.close()
