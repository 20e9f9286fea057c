"""Ids: what must be stable is, what must differ does."""

import re
import uuid

from core import ids


def test_event_ids_have_their_prefix_and_sort_by_time() -> None:
    made = [ids.new_document_id() for _ in range(50)]
    assert all(re.fullmatch(r"doc_[0-9a-f]{32}", one) for one in made)
    assert len(set(made)) == 50
    assert all(uuid.UUID(one.removeprefix("doc_")).version == 7 for one in made)


def test_generations_of_the_same_work_are_the_same_and_others_never() -> None:
    document = ids.new_document_id()
    first = ids.generation_id(document, 1, "p")
    assert first == ids.generation_id(document, 1, "p")
    others = {
        ids.generation_id(document, 2, "p"),
        ids.generation_id(document, 1, "q"),
        ids.generation_id(ids.new_document_id(), 1, "p"),
        ids.generation_id(document, 11, "p"),
    }
    assert first not in others
    assert len(others) == 4


def test_two_generations_never_share_a_point() -> None:
    document = ids.new_document_id()
    points = {
        ids.point_id(ids.generation_id(document, version, "p"), ordinal)
        for version in range(1, 4)
        for ordinal in range(20)
    }
    assert len(points) == 60


def test_is_id_wants_the_right_kind_whole() -> None:
    assert ids.is_id(ids.new_job_id(), "job")
    assert not ids.is_id(ids.new_job_id(), "doc")
    assert not ids.is_id("doc_../../etc", "doc")
    assert not ids.is_id(ids.new_document_id() + "\n", "doc")
