"""The packaged model: its known numbers, its precisions, its tokenizer and its directory."""

import json
import shutil
from pathlib import Path

import pytest

from core.adapters.embed_local import LocalEmbedder
from core.adapters.token_counter import HfTokenCounter
from core.errors import InvalidInput, NotFound

TEXTS = [
    "How long is the notice period for employees?",
    "The relief valve of pump PX-200 opens at 3.5 bar and closes at 2.8 bar. " * 8,
    "Die Kündigungsfrist beträgt drei Monate zum Quartalsende.",
    "Invoice",
    "今天下雨。",
    "naïve café — “quoted” ½ ™ 🙂 \u00ad hy\u00adphen\ttab\nline",
]


def cosines(one: list[list[float]], other: list[list[float]]) -> list[float]:
    return [sum(a * b for a, b in zip(x, y, strict=True)) for x, y in zip(one, other, strict=True)]


def test_it_is_the_model_we_think_it_is(local: LocalEmbedder) -> None:
    """The first numbers of a vector as sentence-transformers' own documentation model gives them
    (all-MiniLM-L6-v2, fp32)."""
    (vector,) = local.embed_questions(["This is an example sentence"])
    assert vector[:4] == pytest.approx([0.0676569, 0.0634959, 0.0487131, 0.0793050], abs=2e-5)
    info = local.info()
    assert (info.dimension, info.max_tokens, info.model_id) == (384, 256, "minilm")


def test_bf16_moves_no_cosine_that_matters(local: LocalEmbedder, model_dir: Path) -> None:
    fast = LocalEmbedder(model_dir, device="cpu", precision="bf16")
    exact, quick = local.embed_passages(TEXTS), fast.embed_passages(TEXTS)
    assert min(cosines(exact, quick)) > 0.9995
    for i in range(len(TEXTS)):
        for j in range(i):
            (one,), (other,) = cosines([exact[i]], [exact[j]]), cosines([quick[i]], [quick[j]])
            assert one == pytest.approx(other, abs=0.01)
    assert fast.info() == local.info(), "an index may be read by either"


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: str(text)[:20])
def test_the_counter_counts_as_the_model_does(
    local: LocalEmbedder, model_dir: Path, text: str
) -> None:
    counter = HfTokenCounter(model_dir)
    assert counter.num_special_tokens == 2
    assert [counter.count(text) + 2] == local.count_tokens([text])
    offsets = counter.token_offsets(text)
    assert len(offsets) == counter.count(text)
    assert all(0 <= start < end <= len(text) for start, end in offsets)
    assert [start for start, _ in offsets] == sorted(start for start, _ in offsets)


def test_offsets_are_code_points(model_dir: Path) -> None:
    text = "🙂 pump 手"
    pieces = [text[start:end] for start, end in HfTokenCounter(model_dir).token_offsets(text)]
    assert pieces == ["🙂", "pump", "手"]


def test_long_texts_are_counted_whole(model_dir: Path) -> None:
    """The packaged tokenizer.json cuts at 128 and pads to 128 unless told not to."""
    counter = HfTokenCounter(model_dir)
    assert counter.count("word " * 1000) == 1000
    assert counter.count("") == 0
    assert counter.token_offsets("word") == [(0, 4)]


def test_the_fingerprint_is_of_the_files_that_decide(model_dir: Path, tmp_path: Path) -> None:
    copy = tmp_path / "other-name"
    shutil.copytree(model_dir, copy)
    first = LocalEmbedder(copy, device="cpu").info()
    (copy / "README.md").write_text("changed")
    same = LocalEmbedder(copy, device="cpu").info()
    config = json.loads((copy / "sentence_bert_config.json").read_text())
    (copy / "sentence_bert_config.json").write_text(json.dumps(config | {"max_seq_length": 128}))
    shorter = LocalEmbedder(copy, device="cpu").info()
    assert first.fingerprint == same.fingerprint != shorter.fingerprint
    assert (same.max_tokens, shorter.max_tokens) == (256, 128)


def test_prompts_take_their_tokens_from_the_limit(model_dir: Path, tmp_path: Path) -> None:
    copy = tmp_path / "prompted"
    shutil.copytree(model_dir, copy)
    path = copy / "config_sentence_transformers.json"
    config = json.loads(path.read_text()) | {"prompts": {"query": "query: ", "passage": "text: "}}
    path.write_text(json.dumps(config))
    prompted = LocalEmbedder(copy, device="cpu", precision="fp32")
    assert prompted.info().max_tokens == 254
    plain = LocalEmbedder(model_dir, device="cpu", precision="fp32")
    assert prompted.embed_questions(["why"])[0] == pytest.approx(
        plain.embed_questions(["query: why"])[0], abs=1e-5
    )
    assert prompted.embed_passages(["why"])[0] == pytest.approx(
        plain.embed_questions(["text: why"])[0], abs=1e-5
    )


def test_a_directory_without_a_model_says_so(tmp_path: Path, model_dir: Path) -> None:
    with pytest.raises(NotFound, match="no modules"):
        LocalEmbedder(tmp_path)
    with pytest.raises(NotFound, match="tokenizer"):
        HfTokenCounter(tmp_path)
    shutil.copytree(model_dir, tmp_path / "broken")
    (tmp_path / "broken" / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(InvalidInput, match="cannot be loaded"):
        LocalEmbedder(tmp_path / "broken", device="cpu")


def test_a_gpu_that_is_not_there_is_refused(model_dir: Path) -> None:
    import torch

    if torch.cuda.is_available():
        assert LocalEmbedder(model_dir, device="cuda").device == "cuda"
        return
    assert LocalEmbedder(model_dir, device="auto").device == "cpu"
    with pytest.raises(InvalidInput, match="sees no GPU"):
        LocalEmbedder(model_dir, device="cuda")
