"""What every implementation of the port VectorIndex does."""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from core.domain.access import Principal, Scope
from core.domain.search import Candidate, LegResults, SearchFilter, SparseVector
from core.errors import IndexUnavailable, ManifestMismatch, NotPermitted
from core.lexical import encode_document, encode_question
from core.ports.vector_index import VectorIndex
from tests.contract.index_adapter.points import (
    ANNE,
    AVERAGE,
    BOB,
    MANIFEST,
    chunk,
    generation,
    point,
)

EVERYWHERE = SearchFilter()


def ask(
    index: VectorIndex,
    principal: Principal = ANNE,
    *,
    dense: Sequence[float] | None = (1.0, 0.0, 0.0),
    words: str | None = "pump",
    limit: int = 10,
    where: SearchFilter = EVERYWHERE,
) -> LegResults:
    lexical = None if words is None else encode_question(words, ["en"])
    return index.search(principal, dense=dense, lexical=lexical, limit=limit, where=where)


def texts(candidates: Sequence[Candidate]) -> list[str]:
    return [candidate.chunk.text for candidate in candidates]


@pytest.fixture
def filled(index: VectorIndex) -> VectorIndex:
    """Two documents in two collections, and one of another tenant."""
    index.ensure(MANIFEST)
    index.upsert(
        ANNE,
        [
            point("the pump opens", (1, 0, 0)),
            point("close the valve", (1, 1, 0), ordinal=1),
            point("pump pump notice", (0, 1, 0), ordinal=2),
            point("a contract about a pump", (0, 0, 1), ordinal=3),
            point(
                "secret pump", (1, 0.2, 0), document="doc_b", made_by="two", collection="private"
            ),
        ],
    )
    index.upsert(BOB, [point("bob's pump", (1, 0, 0), document="doc_bob", made_by="bob")])
    return index


class TestManifest:
    def test_there_is_none_before_ensure(self, index: VectorIndex) -> None:
        assert index.manifest() is None

    def test_ensure_makes_it_once_and_keeps_the_average(self, index: VectorIndex) -> None:
        assert index.ensure(MANIFEST) == MANIFEST
        assert index.manifest() == MANIFEST
        assert index.ensure(replace(MANIFEST, average_terms=99.0)) == MANIFEST

    @pytest.mark.parametrize(
        "other",
        [
            replace(MANIFEST, embedder_fingerprint="embedder-2"),
            replace(MANIFEST, analyser_fingerprint="analyser-2"),
            replace(MANIFEST, schema=2),
            replace(MANIFEST, dimension=4),
        ],
        ids=["embedder", "analyser", "schema", "dimension"],
    )
    def test_a_mismatch_is_refused(self, index: VectorIndex, other: object) -> None:
        index.ensure(MANIFEST)
        with pytest.raises(ManifestMismatch):
            index.ensure(other)  # type: ignore[arg-type]
        assert index.manifest() == MANIFEST

    def test_many_processes_may_ensure_at_once(self, index: VectorIndex) -> None:
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _: index.ensure(MANIFEST), range(8)))
        assert found == [MANIFEST] * 8
        index.upsert(ANNE, [point("the pump opens", (1, 0, 0))])
        assert texts(ask(index).dense) == ["the pump opens"]


class TestBeforeEnsure:
    def test_nothing_is_found_and_nothing_is_there(self, index: VectorIndex) -> None:
        assert ask(index) == LegResults()
        assert index.count(ANNE, "doc_a", generation("one")) == 0
        assert list(index.generations(ANNE)) == []
        index.delete_generation(ANNE, "doc_a", generation("one"))

    def test_writing_is_refused(self, index: VectorIndex) -> None:
        with pytest.raises(IndexUnavailable):
            index.upsert(ANNE, [point("the pump opens", (1, 0, 0))])


class TestWriting:
    def test_the_same_points_twice_are_the_same_as_once(self, filled: VectorIndex) -> None:
        assert filled.count(ANNE, "doc_a", generation("one")) == 4
        filled.upsert(ANNE, [point("the pump opens", (1, 0, 0))])
        assert filled.count(ANNE, "doc_a", generation("one")) == 4

    def test_no_points_are_no_request(self, filled: VectorIndex) -> None:
        filled.upsert(ANNE, [])

    def test_a_point_without_terms_is_found_by_the_dense_leg(self, filled: VectorIndex) -> None:
        silent = point("!", (0, 1, 1), document="doc_c", made_by="three")
        filled.upsert(ANNE, [replace(silent, lexical=SparseVector((), ()))])
        assert texts(ask(filled, dense=silent.dense).dense)[0] == "!"
        assert filled.count(ANNE, "doc_c", generation("three")) == 1

    def test_deleting_a_generation_leaves_the_others(self, filled: VectorIndex) -> None:
        filled.upsert(ANNE, [point("new pump", (1, 0, 0), made_by="newer")])
        filled.delete_generation(ANNE, "doc_a", generation("one"))
        filled.delete_generation(ANNE, "doc_a", generation("one"))
        assert filled.count(ANNE, "doc_a", generation("one")) == 0
        assert filled.count(ANNE, "doc_a", generation("newer")) == 1
        assert sorted(texts(ask(filled).lexical)) == ["new pump", "secret pump"]

    def test_a_key_for_one_collection_writes_to_no_other(self, filled: VectorIndex) -> None:
        narrow = replace(ANNE, collections=frozenset({"private"}))
        with pytest.raises(NotPermitted):
            filled.upsert(narrow, [point("pump", (1, 0, 0), made_by="x", collection="default")])


class TestSearch:
    def test_the_dense_leg_is_ordered_by_cosine(self, filled: VectorIndex) -> None:
        found = ask(filled, words=None).dense
        assert texts(found) == [
            "the pump opens",
            "secret pump",
            "close the valve",
            *texts(sorted(found[3:], key=lambda candidate: candidate.point_id)),
        ]
        assert found[2].leg_score == pytest.approx(math.sqrt(0.5), abs=1e-5)
        assert [c.leg_score for c in found[3:]] == pytest.approx([0.0, 0.0], abs=1e-6)

    def test_the_lexical_leg_is_bm25_with_lucenes_idf(self, filled: VectorIndex) -> None:
        found = {c.chunk.text: c.leg_score for c in ask(filled, dense=None).lexical}
        # "pump" is in every text's heading too ("Pümps"), and in all six points of the index.
        assert set(found) == {
            "the pump opens",
            "close the valve",
            "pump pump notice",
            "a contract about a pump",
            "secret pump",
        }
        idf = math.log(1 + (6 - 6 + 0.5) / (6 + 0.5))
        (term,) = encode_question("pump", ["en"]).indices
        for text, value in found.items():
            vector = encode_document(chunk(text).index_text, "en", AVERAGE)
            weight = dict(zip(vector.indices, vector.values, strict=True))[term]
            assert value == pytest.approx(idf * weight, rel=1e-4)

    def test_a_rare_word_finds_only_its_holders(self, filled: VectorIndex) -> None:
        assert texts(ask(filled, dense=None, words="contract").lexical) == [
            "a contract about a pump"
        ]
        assert ask(filled, dense=None, words="zebra").lexical == ()

    def test_both_legs_keep_their_own_order_and_limit(self, filled: VectorIndex) -> None:
        found = ask(filled, words="notice pump", limit=2)
        assert texts(found.dense) == ["the pump opens", "secret pump"]
        assert texts(found.lexical)[0] == "pump pump notice"
        assert len(found.lexical) == 2

    def test_a_leg_without_a_vector_is_dropped(self, filled: VectorIndex) -> None:
        assert ask(filled, words=None).lexical == ()
        assert ask(filled, dense=None).dense == ()
        assert ask(filled, dense=None, words="the of").lexical == ()
        assert ask(filled, dense=None, words=None) == LegResults()

    def test_a_candidate_carries_the_whole_chunk(self, filled: VectorIndex) -> None:
        best = ask(filled, words=None).dense[0]
        written = point("the pump opens", (1, 0, 0))
        assert best.chunk == written.chunk
        assert (best.point_id, best.document_id, best.generation_id) == (
            written.point_id,
            written.document_id,
            written.generation_id,
        )
        assert (best.collection, best.title) == ("default", "Title of doc_a")

    def test_equal_scores_are_ordered_by_point_id(self, index: VectorIndex) -> None:
        index.ensure(MANIFEST)
        points = [point("the same pump", (1, 0, 0), ordinal=n) for n in range(12)]
        index.upsert(ANNE, points)
        found = ask(index, limit=12)
        assert [c.point_id for c in found.dense] == sorted(p.point_id for p in points)
        assert [c.point_id for c in found.lexical] == sorted(p.point_id for p in points)


class TestWhoSeesWhat:
    def test_another_tenants_points_are_not_there(self, filled: VectorIndex) -> None:
        assert texts(ask(filled, BOB).dense) == ["bob's pump"]
        assert "bob's pump" not in texts(ask(filled).dense) + texts(ask(filled).lexical)
        assert filled.count(BOB, "doc_a", generation("one")) == 0
        assert list(filled.generations(BOB)) == [("doc_bob", generation("bob"))]

    def test_another_tenant_deletes_nothing(self, filled: VectorIndex) -> None:
        filled.delete_generation(BOB, "doc_a", generation("one"))
        assert filled.count(ANNE, "doc_a", generation("one")) == 4

    def test_a_key_sees_only_its_collections(self, filled: VectorIndex) -> None:
        narrow = Principal(
            "ten_anne", "key", frozenset({Scope.SEARCH}), collections=frozenset({"private"})
        )
        found = ask(filled, narrow)
        assert texts(found.dense) == texts(found.lexical) == ["secret pump"]
        asked_for_more = SearchFilter(collections=("default", "private"))
        assert texts(ask(filled, narrow, where=asked_for_more).dense) == ["secret pump"]
        assert ask(filled, narrow, where=SearchFilter(collections=("default",))) == LegResults()

    def test_a_key_without_collections_sees_nothing(self, filled: VectorIndex) -> None:
        nobody = replace(ANNE, collections=frozenset())
        assert ask(filled, nobody) == LegResults()

    def test_narrowing(self, filled: VectorIndex) -> None:
        assert texts(ask(filled, where=SearchFilter(collections=("private",))).dense) == [
            "secret pump"
        ]
        assert texts(ask(filled, where=SearchFilter(document_ids=("doc_b",))).lexical) == [
            "secret pump"
        ]
        excluded = SearchFilter(excluded_generation_ids=(generation("one"),))
        assert texts(ask(filled, where=excluded).dense) == ["secret pump"]
        assert ask(filled, where=SearchFilter(document_ids=("doc_bob",))) == LegResults()

    def test_generations_are_listed_once_each(self, filled: VectorIndex) -> None:
        assert sorted(filled.generations(ANNE)) == sorted(
            [("doc_a", generation("one")), ("doc_b", generation("two"))]
        )


def encode(index_text: str, language: str, average_terms: float) -> SparseVector:
    return encode_document(index_text, language, average_terms)


class TestReencode:
    def test_it_rewrites_the_tenants_lexical_vectors(self, filled: VectorIndex) -> None:
        before = {c.point_id: c.leg_score for c in ask(filled, dense=None).lexical}
        bobs = [c.leg_score for c in ask(filled, BOB, dense=None).lexical]
        assert filled.reencode(ANNE, 50.0, encode) == 5
        after = {c.point_id: c.leg_score for c in ask(filled, dense=None).lexical}
        assert after.keys() == before.keys()
        assert all(after[key] > before[key] for key in before), "texts became short ones"
        assert [c.leg_score for c in ask(filled, BOB, dense=None).lexical] == pytest.approx(bobs)
        assert texts(ask(filled, words=None).dense)[0] == "the pump opens"
        found = filled.manifest()
        assert found == replace(MANIFEST, average_terms=50.0)
        assert filled.ensure(MANIFEST) == found
