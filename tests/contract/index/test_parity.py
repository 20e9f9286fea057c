"""Random data and random questions: the server answers as the client's local mode does.

Where local mode itself differs from a real server, the test says so and why.
"""

import math
import random
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from qdrant_client import QdrantClient, models

from tests.contract.index import dataset
from tests.contract.index.answers import difference, plain, ranking_difference
from tests.contract.index.conftest import Target

NAME = "parity_chunks"
NUM_POINTS = 240
SEEDS = range(6)


@dataclass(frozen=True)
class Pair:
    """The server and local mode, filled with the same points."""

    server: QdrantClient
    local: QdrantClient
    rows: list[models.PointStruct]

    def rank(self, **arguments: Any) -> str | None:
        """How the two rankings differ, or None."""
        left = self.server.query_points(NAME, **arguments).points
        right = self.local.query_points(NAME, **arguments).points
        return ranking_difference(left, right, offset=arguments.get("offset", 0))

    def both(self, method: str, **arguments: Any) -> tuple[Any, Any]:
        """The answers of both to the same call, as plain values."""
        calls = [getattr(client, method) for client in (self.server, self.local)]
        left, right = [plain(call(NAME, **arguments)) for call in calls]
        return left, right


@pytest.fixture(scope="module")
def pair(target: Target) -> Iterator[Pair]:
    rows = dataset.points(seed=20, num_points=NUM_POINTS)
    server, local = target.client(), QdrantClient(":memory:")
    server.delete_collection(NAME)
    for client in (server, local):
        dataset.fill(client, NAME, rows)
    for field, schema in dataset.PAYLOAD_INDEXES.items():
        server.create_payload_index(NAME, field, schema, wait=True)
    yield Pair(server, local, rows)
    server.delete_collection(NAME)
    server.close()
    local.close()


def matches(key: str, value: Any) -> models.FieldCondition:
    return models.FieldCondition(key=key, match=models.MatchValue(value=value))


def matching(key: str, match: Any) -> models.FieldCondition:
    return models.FieldCondition(key=key, match=match)


def within(key: str, **bounds: Any) -> models.FieldCondition:
    kind = models.DatetimeRange if key == "published" else models.Range
    return models.FieldCondition(key=key, range=kind(**bounds))


def conditions(rows: list[models.PointStruct]) -> dict[str, Any]:
    """Every kind of condition, over indexed and unindexed keys."""
    row = models.Nested(
        key="parts", filter=models.Filter(must=[matches("kind", "row"), within("size", gte=3)])
    )
    return {
        "keyword": matches("tenant", "ten_1"),
        "keyword array": matches("tags", "legal"),
        "integer": matches("page_end", 7),
        "true": matches("draft", True),
        "false": matches("draft", False),
        "any": matching("document", models.MatchAny(any=["doc_1", "doc_5"])),
        "any integer": matching("page_start", models.MatchAny(any=[3, 4, 5])),
        "any of none": matching("document", models.MatchAny(any=[])),
        "except": matching("language", models.MatchExcept.model_validate({"except": ["en"]})),
        "text": matching("text", models.MatchText(text="pump VALVE")),
        "any word": matching("text", models.MatchTextAny(text_any="pump invoice")),
        "phrase": matching("text", models.MatchPhrase(phrase="pump valve")),
        "range": within("page_start", gte=5, lt=12),
        "float range": within("weight", gt=1.5, lte=2.5),
        "dates": within("published", gte="2022-01-01T00:00:00Z", lt="2024-03-01T00:00:00+02:00"),
        "a day": within("published", lte="2023-06-15"),
        "ids": models.HasIdCondition(has_id=[str(rows[3].id), str(rows[8].id)]),
        "vector": models.HasVectorCondition(has_vector="lexical"),
        "empty": models.IsEmptyCondition(is_empty=models.PayloadField(key="tags")),
        "null": models.IsNullCondition(is_null=models.PayloadField(key="language")),
        "field not empty": models.FieldCondition(key="tags", is_empty=False),
        "field null": models.FieldCondition(key="language", is_null=True),
        "nested": models.NestedCondition(nested=row),
        "inside arrays": matches("parts[].kind", "row"),
        "absent key": matches("nothing.here", "x"),
        "filter": models.Filter(should=[matches("language", "fr"), matches("draft", True)]),
    }


def random_filter(rng: random.Random, rows: list[models.PointStruct]) -> models.Filter:
    pool = list(conditions(rows).values())
    minimum = models.MinShould(conditions=rng.sample(pool, 4), min_count=rng.randrange(1, 4))
    return models.Filter(
        must=rng.sample(pool, rng.randrange(2)) or None,
        should=rng.sample(pool, rng.randrange(4)) or None,
        must_not=rng.sample(pool, rng.randrange(2)) or None,
        min_should=rng.choice([None, None, minimum]),
    )


def scrolled(client: QdrantClient, condition: models.Filter) -> list[str]:
    found, _ = client.scroll(NAME, scroll_filter=condition, limit=NUM_POINTS, with_payload=False)
    return [str(record.id) for record in found]


def test_every_kind_of_condition_selects_the_same_points(pair: Pair) -> None:
    for name, condition in conditions(pair.rows).items():
        found = {}
        for side in ("must", "must_not"):
            only = models.Filter.model_validate({side: [condition]})
            found[side] = scrolled(pair.server, only)
            assert found[side] == scrolled(pair.local, only), (name, side)
            assert pair.server.count(NAME, count_filter=only).count == len(found[side]), name
        # Nothing proves itself by finding nothing both ways.
        assert len(found["must"]) + len(found["must_not"]) == NUM_POINTS, name


@pytest.mark.parametrize("seed", SEEDS)
def test_random_filters_select_the_same_points(pair: Pair, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(10):
        condition = random_filter(rng, pair.rows)
        assert scrolled(pair.server, condition) == scrolled(pair.local, condition), condition


@pytest.mark.parametrize("seed", SEEDS)
def test_dense_and_sparse_rankings(pair: Pair, seed: int) -> None:
    rng = random.Random(100 + seed)
    for condition in (None, random_filter(rng, pair.rows)):
        legs = (("dense", dataset.dense(rng)), ("lexical", dataset.sparse(rng, 5)))
        for using, vector in legs:
            found = pair.rank(
                query=vector, using=using, query_filter=condition, limit=20, offset=seed % 3
            )
            assert found is None, (using, condition, found)


def terms_of(row: models.PointStruct) -> models.SparseVector | None:
    vector = row.vector.get("lexical") if isinstance(row.vector, dict) else None
    return vector if isinstance(vector, models.SparseVector) else None


def test_sparse_scores_are_term_weights_times_idf_of_the_whole_collection(pair: Pair) -> None:
    # The definition itself, not only two implementations of it: ln((N - n + 0.5)/(n + 0.5) + 1)
    # over all points that have the vector, whatever the filter.
    term = 4
    holders = {}
    for row in pair.rows:
        vector = terms_of(row)
        if vector is not None and term in vector.indices:
            holders[str(row.id)] = vector.values[vector.indices.index(term)]
    num_points = sum(terms_of(row) is not None for row in pair.rows)
    idf = math.log((num_points - len(holders) + 0.5) / (len(holders) + 0.5) + 1)
    found = pair.server.query_points(
        NAME,
        query=models.SparseVector(indices=[term], values=[2.0]),
        using="lexical",
        query_filter=models.Filter(must=[matches("tenant", "ten_2")]),
        limit=NUM_POINTS,
    ).points
    assert found
    for point in found:
        assert point.score == pytest.approx(2.0 * holders[str(point.id)] * idf, rel=1e-5)


def test_idf_over_a_corpus(pair: Pair) -> None:
    corpus = models.Filter(must=[matches("tenant", "ten_1")])
    vector = dataset.sparse(random.Random(7), 5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = pair.rank(
            query=vector,
            using="lexical",
            limit=20,
            search_params=models.SearchParams(idf=models.IdfCorpusParams(corpus=corpus)),
        )
    assert found is None
    plain_scores = pair.server.query_points(NAME, query=vector, using="lexical", limit=3).points
    narrow = pair.server.query_points(
        NAME,
        query=vector,
        using="lexical",
        limit=3,
        search_params=models.SearchParams(idf=models.IdfCorpusParams(corpus=corpus)),
    ).points
    assert [p.score for p in plain_scores] != [p.score for p in narrow]


FUSIONS: dict[str, Any] = {
    "rrf": models.FusionQuery(fusion=models.Fusion.RRF),
    "rrf k": models.RrfQuery(rrf=models.Rrf(k=61)),
    "rrf weights": models.RrfQuery(rrf=models.Rrf(k=61, weights=[1.0, 2.5])),
    "dbsf": models.FusionQuery(fusion=models.Fusion.DBSF),
}


@pytest.mark.parametrize("fusion", FUSIONS)
@pytest.mark.parametrize("seed", SEEDS)
def test_hybrid_rankings(pair: Pair, fusion: str, seed: int) -> None:
    rng = random.Random(200 + seed)
    legs = [
        models.Prefetch(query=dataset.dense(rng), using="dense", limit=30),
        models.Prefetch(query=dataset.sparse(rng, 5), using="lexical", limit=30),
    ]
    condition = rng.choice([None, models.Filter(must=[matches("tenant", "ten_1")])])
    found = pair.rank(prefetch=legs, query=FUSIONS[fusion], query_filter=condition, limit=25)
    assert found is None, found
    narrowed = [leg.model_copy(update={"filter": random_filter(rng, pair.rows)}) for leg in legs]
    found = pair.rank(prefetch=narrowed, query=FUSIONS[fusion], limit=25, offset=1)
    assert found is None, found


@pytest.mark.parametrize("seed", SEEDS)
def test_stages_of_prefetch(pair: Pair, seed: int) -> None:
    rng = random.Random(300 + seed)
    vector = dataset.dense(rng)
    legs = [
        models.Prefetch(query=vector, using="dense", limit=30, score_threshold=0.1),
        models.Prefetch(query=dataset.sparse(rng, 5), using="lexical", limit=30),
    ]
    assert pair.rank(prefetch=legs[1], query=vector, using="dense", limit=10) is None
    # Inner fusion by DBSF: with RRF the inner list has ties, which the two break differently, and
    # the outer fusion turns the order of a tie into a score.
    inner = models.Prefetch(prefetch=legs, query=FUSIONS["dbsf"], limit=15)
    outer = models.Prefetch(
        query=vector, using="dense", limit=5, filter=models.Filter(must=[matches("draft", False)])
    )
    assert pair.rank(prefetch=[inner, outer], query=FUSIONS["dbsf"], limit=12) is None
    assert pair.rank(query=vector, using="dense", score_threshold=0.2, limit=100) is None


def test_a_batch_answers_as_its_parts(pair: Pair) -> None:
    rng = random.Random(9)
    requests = [
        models.QueryRequest(query=dataset.dense(rng), using="dense", limit=7, with_payload=True),
        models.QueryRequest(query=dataset.sparse(rng, 5), using="lexical", limit=7),
        models.QueryRequest(
            prefetch=[models.Prefetch(query=dataset.dense(rng), using="dense", limit=9)],
            query=FUSIONS["dbsf"],
            limit=3,
        ),
    ]
    together = pair.server.query_batch_points(NAME, requests)
    assert len(together) == len(requests)
    for request, answer in zip(requests, together, strict=True):
        alone = pair.server.query_points(
            NAME,
            query=request.query,
            using=request.using,
            prefetch=request.prefetch,
            limit=request.limit or 10,
            with_payload=bool(request.with_payload),
        )
        assert answer == alone
    assert pair.server.query_batch_points(NAME, []) == []


def test_a_limit_beyond_the_collection_finds_everything(pair: Pair) -> None:
    vector = dataset.dense(random.Random(1))
    found = pair.server.query_points(NAME, query=vector, using="dense", limit=2**31).points
    assert len(found) == NUM_POINTS
    beyond = pair.server.query_points(NAME, query=vector, using="dense", limit=5, offset=10**9)
    assert beyond.points == []


def test_scrolling_in_pages_visits_every_point_once_in_the_order_of_ids(pair: Pair) -> None:
    pages = {}
    for client in (pair.server, pair.local):
        offset, visited = None, []
        while True:
            records, offset = client.scroll(NAME, limit=37, offset=offset, with_payload=False)
            visited.append([str(record.id) for record in records])
            if offset is None:
                break
        pages[client] = visited
    assert pages[pair.server] == pages[pair.local]
    flat = [point_id for page in pages[pair.server] for point_id in page]
    assert flat == sorted({str(row.id) for row in pair.rows})


def test_payload_and_vector_selectors(pair: Pair) -> None:
    exclude = models.PayloadSelectorExclude(exclude=["text", "parts"])
    include = models.PayloadSelectorInclude(include=["tenant", "parts[].kind"])
    for selector in (True, False, ["tenant", "document"], include, exclude):
        left, right = pair.both("scroll", limit=30, with_payload=selector, with_vectors=False)
        assert difference(left, right) is None, selector
    for vectors in (True, ["lexical"], ["dense"], False):
        left, right = pair.both("scroll", limit=30, with_payload=False, with_vectors=vectors)
        assert difference(left, right) is None, vectors


def test_retrieve(pair: Pair) -> None:
    ids = [str(pair.rows[4].id), str(pair.rows[1].id), "00000000-0000-0000-0000-000000000000"]
    left, right = pair.both("retrieve", ids=ids, with_vectors=True)
    assert difference(left, right) is None
    # Local mode repeats a point whose id is repeated; the core of the server does not.
    repeated = pair.server.retrieve(NAME, [ids[0], ids[0]])
    assert [str(record.id) for record in repeated] == [ids[0]]


def test_facets(pair: Pair) -> None:
    condition = models.Filter(must=[matches("tenant", "ten_1")])
    for key in ("language", "document", "tags", "page_start"):
        left, right = pair.both("facet", key=key, exact=True, limit=100, facet_filter=condition)
        counts = [
            sorted((str(hit["value"]), hit["count"]) for hit in answer["hits"])
            for answer in (left, right)
        ]
        assert counts[0] == counts[1], key
        assert counts[0], key
