"""The sample bucket, rendered once a session, and its text as a parser sees it."""

import json
from pathlib import Path
from typing import Any

import pymupdf
import pytest

from examples.render import render_all

ROOT = Path(__file__).resolve().parents[3]
PageText = dict[tuple[str, int], str]  # (object key, page from 1) -> whitespace-normalised text


def text_in_order(page: Any) -> str:
    """The lines of a page in the order in which they stand in the file, spaces normalised."""
    blocks = page.get_text("dict")["blocks"]
    lines = [line for block in blocks for line in block.get("lines", ())]
    return " ".join("".join(span["text"] for span in line["spans"]) for line in lines)


@pytest.fixture(scope="session")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bucket")
    render_all(folder)
    return folder


@pytest.fixture(scope="session")
def pages(bucket: Path) -> PageText:
    texts: PageText = {}
    for path in sorted(bucket.rglob("*.pdf")):
        with pymupdf.open(path) as document:
            for num, page in enumerate(document, start=1):
                key = path.relative_to(bucket).as_posix()
                texts[key, num] = " ".join(text_in_order(page).split())
    return texts


@pytest.fixture(scope="session")
def questions() -> list[dict[str, Any]]:
    lines = (ROOT / "examples" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]
