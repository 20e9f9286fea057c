"""Only what the snapshot shows is found, in one embedding call, whatever lies in the index."""

from collections.abc import Sequence

import pytest

from core.domain.search import SearchFilter
from core.errors import IndexUnavailable, ModelsUnavailable
from core.settings import RetrievalSettings
from query.retrieval.search import RetrievalDeps, Retrieved, retrieve
from tests.fakes.clock import FakeClock
from tests.fakes.models import FakeEmbedder
from tests.passages import ASKER, ListedIndex, Snapshot, make_candidate

QUESTION = "How often are the pumps tested?"


class CountingEmbedder(FakeEmbedder):
    """Remembers what it was asked to embed."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[list[str]] = []

    def embed_questions(self, texts: Sequence[str]) -> list[list[float]]:
        self.calls.append(list(texts))
        return super().embed_questions(texts)


def search(
    index: ListedIndex,
    snapshot: Snapshot,
    settings: RetrievalSettings | None = None,
    *,
    where: SearchFilter | None = None,
    embedder: FakeEmbedder | None = None,
) -> Retrieved:
    deps = RetrievalDeps(
        index, embedder or FakeEmbedder(), FakeClock(), settings or RetrievalSettings()
    )
    (found,), _ = retrieve(ASKER, [QUESTION], where or SearchFilter(), snapshot, deps)
    return found


def ids(found: Retrieved) -> list[str]:
    return [passage.point_id for passage in found.passages]


def test_hidden_generations_are_dropped_from_both_legs() -> None:
    index = ListedIndex(
        dense=[make_candidate("old", 0.9, generation_id="gone"), make_candidate("new", 0.5)],
        lexical=[make_candidate("new", 5.0), make_candidate("half", 9.0, generation_id="building")],
    )
    found = search(index, Snapshot("gen_1"))
    assert ids(found) == ["new"]
    assert set(found.versions) == {"gen_1"}
    assert found.num_rounds == 1


def test_title_and_collection_are_the_catalogs() -> None:
    found = search(ListedIndex(dense=[make_candidate("a", 0.5)]), Snapshot("gen_1"))
    assert (found.passages[0].title, found.passages[0].collection) == ("Manual.pdf", "plant")


def test_a_crowded_out_leg_is_searched_again_without_the_hidden_ones() -> None:
    settings = RetrievalSettings(candidates=4)
    crowd = [make_candidate(f"old{i}", 0.9, generation_id=f"gone{i % 2}") for i in range(4)]
    index = ListedIndex(dense=[*crowd, make_candidate("new", 0.1)])
    found = search(index, Snapshot("gen_1"), settings)
    assert ids(found) == ["new"]
    assert found.num_rounds == 2
    assert index.filters[1].excluded_generation_ids == ("gone0", "gone1")


def test_generations_that_keep_crowding_end_after_a_few_rounds() -> None:
    settings = RetrievalSettings(candidates=2)
    crowd = [make_candidate(f"old{i:02}", 0.9, generation_id=f"gone{i:02}") for i in range(40)]
    found = search(ListedIndex(dense=crowd), Snapshot(), settings)
    assert ids(found) == []
    assert found.num_rounds == 4


def test_a_leg_that_is_not_full_is_not_searched_again() -> None:
    index = ListedIndex(dense=[make_candidate("old", 0.9, generation_id="gone")])
    assert search(index, Snapshot("gen_1")).num_rounds == 1


def test_the_callers_own_exclusions_stay() -> None:
    where = SearchFilter(collections=("plant",), excluded_generation_ids=("gen_1",))
    index = ListedIndex(dense=[make_candidate("a", 0.5)])
    assert ids(search(index, Snapshot("gen_1"), where=where)) == []
    assert index.filters[0].collections == ("plant",)


@pytest.mark.parametrize(
    ("legs", "asked"),
    [("hybrid", (True, True)), ("dense", (True, False)), ("lexical", (False, True))],
)
def test_legs_can_be_switched_off(legs: str, asked: tuple[bool, bool]) -> None:
    index = ListedIndex([make_candidate("d", 0.5)], [make_candidate("l", 5.0)])
    settings = RetrievalSettings.model_validate({"legs": legs})
    found = search(index, Snapshot("gen_1"), settings)
    assert index.legs == [asked]
    assert set(ids(found)) == {name for name, is_on in zip("dl", asked, strict=True) if is_on}


def test_a_question_without_terms_has_no_lexical_leg() -> None:
    index = ListedIndex([make_candidate("d", 0.5)], [make_candidate("l", 5.0)])
    deps = RetrievalDeps(index, FakeEmbedder(), FakeClock(), RetrievalSettings())
    retrieve(ASKER, ["who is it?"], SearchFilter(), Snapshot("gen_1"), deps)
    assert index.legs == [(True, False)]


def test_several_questions_are_one_embedding_call() -> None:
    embedder = CountingEmbedder()
    index = ListedIndex([make_candidate("d", 0.5)])
    deps = RetrievalDeps(index, embedder, FakeClock(), RetrievalSettings())
    found, _ = retrieve(
        ASKER, ["Who tests PX-200?", "Who signs?"], SearchFilter(), Snapshot("gen_1"), deps
    )
    assert len(embedder.calls) == 1
    assert embedder.calls[0] == ["Who tests PX-200?", "Who tests", "Who signs?"]
    assert len(index.filters) == 2
    assert found[0].vector != found[0].focus_vector
    assert found[1].vector == found[1].focus_vector


def test_words_alone_need_no_models() -> None:
    embedder = FakeEmbedder()
    embedder.is_down = True
    settings = RetrievalSettings(legs="lexical", rerank_passages=0)
    index = ListedIndex(lexical=[make_candidate("l", 5.0)])
    assert ids(search(index, Snapshot("gen_1"), settings, embedder=embedder)) == ["l"]
    with pytest.raises(ModelsUnavailable):
        search(index, Snapshot("gen_1"), embedder=embedder)


def test_an_index_that_is_down_is_an_error() -> None:
    class Down(ListedIndex):
        def search(self, *args: object, **kwargs: object) -> None:  # type: ignore[override]
            raise IndexUnavailable("down")

    with pytest.raises(IndexUnavailable):
        search(Down(), Snapshot("gen_1"))


def test_an_empty_index_is_no_error() -> None:
    found = search(ListedIndex(), Snapshot())
    assert (ids(found), found.versions, found.num_rounds) == ([], {}, 1)
