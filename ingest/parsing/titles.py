"""Whether what a file says its title is can be shown to people."""

from __future__ import annotations

import regex

_WRITTEN_BY = regex.compile(
    r"^(?:Microsoft (?:Word|PowerPoint|Excel)|OpenOffice|LibreOffice(?: \w+)?)\s*[-–]\s*", regex.I
)
_FILE_ENDING = regex.compile(
    r"\.(?:docx?|dotx?|rtf|odt|pptx?|xlsx?|indd|qxd|tex|dvi|pdf|html?|ps|eps|ai|txt|fm|p65|xml)$",
    regex.I,
)
_SAYS_NOTHING = regex.compile(
    r"(?:untitled|unknown|no title|title|document|presentation|slide|power ?point presentation"
    r"|blank|template|draft|test|scan(?:ned)?(?: document)?|unbenannt|ohne titel|sans titre"
    r"|dokument|präsentation)[\s_-]*\d*",
    regex.I,
)
_MIN_LETTERS = 3


def sensible_title(raw: str) -> str | None:
    """The title without what programs put there, or None when nothing of use is left: the name of a
    file, "untitled", a number."""
    title = _WRITTEN_BY.sub("", raw).strip()
    is_file_name = _FILE_ENDING.search(title) is not None
    title = _FILE_ENDING.sub("", title).strip()
    if is_file_name and " " not in title:
        return None
    if _SAYS_NOTHING.fullmatch(title) or sum(char.isalpha() for char in title) < _MIN_LETTERS:
        return None
    return title
