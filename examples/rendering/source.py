"""Reads one source file: a front matter of ``key: value`` lines and a body of simple blocks.

The body is a small Markdown subset. One block per paragraph of lines::

    # Heading            ## Sub-heading          ### Third level
    4.2 A numbered clause (only where the front matter says ``layout: contract``)
    (a) a lettered sub-clause, likewise
    - a list item        1. a numbered item      (a following indented line continues an item)
    > Warning: a boxed note; the words before the colon are its label
    Table 3. A caption, directly above its table
    | head | head |      |---|-----:|            | cell | cell |
    ~~~chart / ~~~facts / ~~~art ... ~~~         [[contents]]            ---page---

In a table the rule row gives the relative column widths (number of dashes) and right alignment (a
closing colon). ``**bold**`` and ``*italic*`` are the only inline marks.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class SourceError(ValueError):
    """A source file does not follow the little language above; says which file and what."""


@dataclass(frozen=True)
class Heading:
    """A heading of level 1 to 3."""

    level: int
    text: str


@dataclass(frozen=True)
class Para:
    """A paragraph, or the caption of a figure."""

    text: str


@dataclass(frozen=True)
class Clause:
    """A numbered (depth 1) or lettered (depth 2) contract clause."""

    number: str
    text: str
    depth: int


@dataclass(frozen=True)
class Items:
    """A bulleted or a numbered list."""

    items: tuple[str, ...]
    is_ordered: bool


@dataclass(frozen=True)
class Callout:
    """A boxed note."""

    label: str
    text: str


@dataclass(frozen=True)
class Grid:
    """A table. ``weights`` are relative column widths, ``is_right`` the columns set flush right."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    weights: tuple[int, ...]
    is_right: tuple[bool, ...]


@dataclass(frozen=True)
class Fence:
    """A ``~~~kind`` block, its lines unread."""

    kind: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Contents:
    """The place of the table of contents."""


@dataclass(frozen=True)
class PageBreak:
    """Start a new page."""


Block = Heading | Para | Clause | Items | Callout | Grid | Fence | Contents | PageBreak


@dataclass(frozen=True)
class Source:
    """A parsed source file; ``key`` is the path of the PDF under the output folder."""

    key: str
    meta: dict[str, str]
    blocks: tuple[Block, ...]

    def get(self, name: str, default: str = "") -> str:
        """A value of the front matter."""
        return self.meta.get(name, default)


_CLAUSE = re.compile(r"(\d+\.\d+(?:\.\d+)*)\s+(.+)", re.S)
_LETTER = re.compile(r"(\([a-z]\))\s+(.+)", re.S)
_ITEM = re.compile(r"(?:[-]|\d+\.)\s+")
_CAPTION = re.compile(r"(?:Table|Tabelle|Schedule) [0-9A-Z.]+ ")


def read_source(path: Path, root: Path) -> Source:
    """Parses one file under ``root``; raises SourceError when it is not in the language."""
    text = path.read_text(encoding="utf-8")
    if not text.startswith("---\n") or "\n---\n" not in text:
        raise SourceError(f"{path.name}: no front matter")
    head, body = text[4:].split("\n---\n", 1)
    meta: dict[str, str] = {}
    for line in head.splitlines():
        name, colon, value = line.partition(":")
        if not colon:
            raise SourceError(f"{path.name}: front matter line without a colon: {line}")
        meta[name.strip()] = value.strip()
    key = path.relative_to(root).with_suffix(".pdf").as_posix()
    try:
        blocks = parse_blocks(body, is_contract=meta.get("layout") == "contract")
    except SourceError as err:
        raise SourceError(f"{path.name}: {err}") from err
    return Source(key=key, meta=meta, blocks=blocks)


def parse_blocks(body: str, *, is_contract: bool = False) -> tuple[Block, ...]:
    """The blocks of a body in order; raises SourceError for an unclosed fence or a ragged table."""
    blocks: list[Block] = []
    for lines in _groups(body.splitlines()):
        blocks.extend(_parse_group(lines, is_contract))
    return tuple(blocks)


def _groups(lines: list[str]) -> list[list[str]]:
    """Splits at blank lines; a fence is one group whatever is in it."""
    groups: list[list[str]] = []
    current: list[str] = []
    in_fence = False
    for line in lines:
        if line.startswith("~~~"):
            current.append(line)
            if in_fence:
                groups.append(current)
                current = []
            in_fence = not in_fence
        elif line.strip() or in_fence:
            current.append(line)
        elif current:
            groups.append(current)
            current = []
    if in_fence:
        raise SourceError("a ~~~ block is not closed")
    if current:
        groups.append(current)
    return groups


def _parse_group(lines: list[str], is_contract: bool) -> list[Block]:
    first = lines[0]
    readers: tuple[tuple[bool, Callable[[], list[Block]]], ...] = (
        (first.startswith("~~~"), lambda: [Fence(first[3:].strip(), tuple(lines[1:-1]))]),
        (first == "---page---", lambda: [PageBreak()]),
        (first == "[[contents]]", lambda: [Contents()]),
        (first.startswith("#"), lambda: _headings(lines, is_contract)),
        (first.startswith("> "), lambda: [_callout(lines)]),
        (first.startswith("|"), lambda: [_grid("", lines)]),
        (bool(_CAPTION.match(first)) and len(lines) > 1, lambda: [_grid(first, lines[1:])]),
        (bool(_ITEM.match(first)), lambda: [_items(lines)]),
    )
    for applies, read in readers:
        if applies:
            return read()
    text = _joined(lines)
    for pattern, depth in ((_CLAUSE, 1), (_LETTER, 2)):
        found = pattern.fullmatch(text) if is_contract else None
        if found:
            return [Clause(found[1], found[2], depth)]
    return [Para(text)]


def _headings(lines: list[str], is_contract: bool) -> list[Block]:
    marks, _, text = lines[0].partition(" ")
    blocks: list[Block] = [Heading(len(marks), text.strip())]
    if lines[1:]:
        blocks.extend(_parse_group(lines[1:], is_contract))
    return blocks


def _callout(lines: list[str]) -> Callout:
    text = _joined([line.removeprefix(">") for line in lines])
    label, colon, rest = text.partition(": ")
    if not colon:
        raise SourceError(f"a note without a label: {text[:40]}")
    return Callout(label, rest)


def _items(lines: list[str]) -> Items:
    items: list[list[str]] = []
    for line in lines:
        if line.startswith(" "):
            items[-1].append(line)
        elif _ITEM.match(line):
            items.append([_ITEM.sub("", line, count=1)])
        else:
            raise SourceError(f"a list goes on without an indent: {line[:40]}")
    return Items(tuple(_joined(item) for item in items), is_ordered=lines[0][0].isdigit())


def _grid(caption: str, lines: list[str]) -> Grid:
    rows = [tuple(cell.strip() for cell in line.strip()[1:-1].split("|")) for line in lines]
    header: tuple[str, ...] = ()
    rule = next((row for row in rows if set("".join(row)) <= set("-:") and any(row)), None)
    if rule is None:
        raise SourceError(f"a table without a rule row: {lines[0][:40]}")
    if rows[0] != rule:
        header = rows[0]
    body = tuple(rows[rows.index(rule) + 1 :])
    ragged = [row for row in body if len(row) != len(rule)]
    if ragged:
        raise SourceError(f"a table row with {len(ragged[0])} cells, not {len(rule)}: {ragged[0]}")
    weights = tuple(cell.count("-") for cell in rule)
    return Grid(caption, header, body, weights, tuple(cell.endswith(":") for cell in rule))


def _joined(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())
