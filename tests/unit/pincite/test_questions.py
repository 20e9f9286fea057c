"""Answers as `pincite ask` prints them."""

from typing import Any

from pincite.cli.questions import format_answer

QUOTED: dict[str, Any] = {
    "answer_status": "answered",
    "mode": "extractive",
    "text": "“Tested yearly.” [1]",
    "citations": [
        {
            "n": 1,
            "verdict": "supported",
            "sources": [
                {"source_id": "s1", "quote": "Tested\nyearly.", "locations": [{"page": 7}]}
            ],
        }
    ],
    "sentences": [],
    "sources": [{"id": "s1", "title": "Manual", "view_url": "/view/doc_1?page=7"}],
    "missing": [],
}
ADDRESS = "    http://host/view/doc_1?page=7"


def test_quotes_with_their_place() -> None:
    assert format_answer(QUOTED, "http://host").splitlines() == [
        "“Tested yearly.” [1]",
        "",
        "[1] Manual, page 7",
        ADDRESS,
    ]


def test_written_text_with_what_it_cites_and_what_nothing_supports() -> None:
    text = "They are tested yearly [1]. They are blue. So."
    written = QUOTED | {
        "mode": "generative",
        "text": text,
        "sentences": [
            {"start": 0, "end": 27, "verdict": "supported"},
            {"start": 28, "end": 42, "verdict": "unsupported"},
            {"start": 43, "end": 46, "verdict": "weak"},
        ],
    }
    assert format_answer(written, "http://host").splitlines() == [
        text,
        "",
        "[1] Manual, page 7",
        "    “Tested yearly.” (supported)",
        ADDRESS,
        "Not supported by the documents: They are blue.",
        "Not plainly supported: So.",
    ]


def test_parts_without_an_answer() -> None:
    assert format_answer({"answer_status": "not_in_documents"}, "") == "Not in the documents."
    partial = QUOTED | {"missing": ["who?"]}
    assert format_answer(partial, "http://host").endswith("Nothing found on: who?")
