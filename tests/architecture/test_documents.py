"""The documentation keeps its form and its links; decisions say what a decision must say."""

import re
from pathlib import Path

import pytest

from tests.architecture.repository import ROOT, committed_files, source
from tests.architecture.test_names import BANNED_NAMES, BANNED_WORDS

MARKDOWN = [path for path in committed_files() if path.suffix == ".md"]
DECISIONS = [path for path in MARKDOWN if re.fullmatch(r"docs/decisions/\d{4}-.*", str(path))]
SECTIONS = ["Context", "Decision", "Consequences", "Alternatives", "Files"]
MAX_DECISION_LINES = 60
LINK = re.compile(r"(?<!!)\[[^\]\n]+\]\(([^)\s]+)\)")


def broken_links(path: Path) -> list[str]:
    """Relative link targets of a Markdown file that are not in the repository."""
    targets = [target.partition("#")[0] for target in LINK.findall(source(path))]
    return [
        target
        for target in targets
        if target and "://" not in target and not (ROOT / path.parent / target).exists()
    ]


@pytest.mark.parametrize("path", MARKDOWN, ids=str)
def test_relative_links_lead_somewhere(path: Path) -> None:
    assert not broken_links(path)


@pytest.mark.parametrize("path", DECISIONS, ids=str)
def test_a_decision_has_its_sections_and_fits_a_screen(path: Path) -> None:
    text = source(path)
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == SECTIONS
    assert text.startswith(f"# {path.name[:4]}: ")
    assert re.search(r"^Status: \w+.*, \d{4}-\d{2}-\d{2}$", text, re.MULTILINE)
    assert len(text.splitlines()) <= MAX_DECISION_LINES


def test_decisions_are_numbered_without_gaps_and_listed() -> None:
    numbers = [int(path.name[:4]) for path in DECISIONS]
    assert numbers == list(range(1, len(DECISIONS) + 1))
    listed = source(Path("docs/decisions/README.md"))
    assert [path.name for path in DECISIONS if f"({path.name})" not in listed] == []


def test_decisions_name_files_that_exist() -> None:
    """A decision whose files moved is found here, so that it is read again."""
    for path in DECISIONS:
        for name in re.findall(r"`([^`]+)`", source(path).partition("## Files")[2]):
            assert (ROOT / name).exists(), f"{path} names {name}"


def test_the_glossary_explains_every_banned_name() -> None:
    glossary = source(Path("docs/glossary.md"))
    for word in BANNED_WORDS | BANNED_NAMES:
        assert f"`{word}`" in glossary
