"""GGUF files converted once: what comes out, when it is redone, and what is refused."""

import contextlib
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import ModelLoadError
from engine.weights import conversion
from engine.weights.conversion import convert_once
from engine.weights.gguf_config import llama3_factors
from engine.weights.loading import open_checkpoint
from tests.builders_gguf import CHAT_TEMPLATE, HEAD_DIM, HIDDEN, TinyModel, byte_level

TINY = TinyModel()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return TINY.write(tmp_path / "tiny.gguf")


def model_file(directory: Path) -> Path:
    return directory / "model.safetensors"


def stamp(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_ino, found.st_mtime_ns


@pytest.mark.parametrize(
    "model",
    [
        TINY,
        TinyModel(has_bias=True, ties_embeddings=False),
        TinyModel(architecture="qwen2", has_bias=True),
    ],
    ids=["llama", "llama-bias-untied", "qwen2"],
)
def test_tensors_are_those_of_the_original(tmp_path: Path, model: TinyModel) -> None:
    checkpoint = open_checkpoint(model.write(tmp_path / "m.gguf"), torch.float32)
    expected = model.tensors()
    assert set(checkpoint.names) == set(expected)
    for name, values in expected.items():
        assert torch.equal(checkpoint.tensor(name), torch.from_numpy(values)), name


def test_the_files_are_those_of_a_hugging_face_directory(source: Path) -> None:
    directory = convert_once(source, torch.bfloat16)
    assert directory == source.parent / "tiny.gguf.converted" / "bfloat16"
    config = json.loads((directory / "config.json").read_text())
    assert config == {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "rms_norm_eps": 1e-05,
        "rope_theta": 10_000.0,
        "max_position_embeddings": 256,
        "vocab_size": len(TINY.vocabulary.tokens),
        "tie_word_embeddings": True,
        "attention_bias": False,
        "mlp_bias": False,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "torch_dtype": "bfloat16",
    }
    texts = json.loads((directory / "tokenizer_config.json").read_text())
    assert texts["chat_template"] == CHAT_TEMPLATE
    assert (texts["bos_token"], texts["eos_token"]) == ("<|start|>", "<|end|>")
    assert json.loads((directory / "generation_config.json").read_text())["eos_token_id"] == [2]
    assert open_checkpoint(source, torch.bfloat16).tensor("model.norm.weight").dtype == (
        torch.bfloat16
    )


def test_every_end_token_is_kept(tmp_path: Path) -> None:
    ends = {"tokenizer.ggml.eot_token_id": 0, "tokenizer.ggml.eom_token_id": 2}
    directory = convert_once(TinyModel(general=ends).write(tmp_path / "m.gguf"), torch.float32)
    assert json.loads((directory / "generation_config.json").read_text())["eos_token_id"] == [2, 0]


def test_named_chat_templates_are_kept(tmp_path: Path) -> None:
    named = {
        "tokenizer.chat_templates": ["tool_use"],
        "tokenizer.chat_template.tool_use": "{{ tools }}",
    }
    directory = convert_once(TinyModel(general=named).write(tmp_path / "m.gguf"), torch.float32)
    texts = json.loads((directory / "tokenizer_config.json").read_text())
    assert texts["chat_template"] == [
        {"name": "default", "template": CHAT_TEMPLATE},
        {"name": "tool_use", "template": "{{ tools }}"},
    ]


def test_a_link_is_known_by_its_own_name(source: Path, tmp_path: Path) -> None:
    """Caches keep files under their hash and link to them."""
    stored = tmp_path / "store" / "0a1b2c"
    stored.parent.mkdir()
    source.rename(stored)
    (tmp_path / "linked").mkdir()
    link = tmp_path / "linked" / "tiny.gguf"
    link.symlink_to(stored)
    checkpoint = open_checkpoint(link, torch.float32)
    assert checkpoint.directory == tmp_path / "linked" / "tiny.gguf.converted" / "float32"
    assert [path.name for path in stored.parent.iterdir()] == ["0a1b2c"]


class TestOnce:
    def test_the_second_time_nothing_is_read(
        self, source: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first = convert_once(source, torch.float32)
        before = stamp(model_file(first))
        monkeypatch.setattr(conversion, "GGUFFile", None)
        monkeypatch.setattr(conversion, "file_sha256", None)
        assert convert_once(source, torch.float32) == first
        assert stamp(model_file(first)) == before

    def test_each_dtype_has_its_own(self, source: Path) -> None:
        found = {convert_once(source, dtype).name for dtype in (torch.float32, torch.float16)}
        assert found == {"float32", "float16"}

    def test_another_source_is_converted_again(self, source: Path) -> None:
        first = open_checkpoint(source, torch.float32)
        replace(TINY, seed=2).write(source)
        second = open_checkpoint(source, torch.float32)
        assert second.fingerprint != first.fingerprint
        expected = torch.from_numpy(replace(TINY, seed=2).tensors()["model.norm.weight"])
        assert torch.equal(second.tensor("model.norm.weight"), expected)

    def test_a_touched_source_is_not(self, source: Path) -> None:
        first = open_checkpoint(source, torch.float32)
        before = stamp(model_file(first.directory))
        os.utime(source, ns=(1, 1))
        second = open_checkpoint(source, torch.float32)
        assert second.fingerprint == first.fingerprint
        assert stamp(model_file(second.directory)) == before
        manifest = json.loads((second.directory / "conversion.json").read_text())
        assert manifest["source"]["mtime_ns"] == 1

    @pytest.mark.parametrize(
        "damage",
        [
            lambda d: model_file(d).write_bytes(model_file(d).read_bytes()[:-1]),
            lambda d: (d / "tokenizer.json").unlink(),
            lambda d: (d / "conversion.json").unlink(),
            lambda d: (d / "conversion.json").write_text('{"converter_version": 1}'),
            lambda d: (d / "conversion.json").write_text(
                (d / "conversion.json").read_text().replace('_version": 1', '_version": 0')
            ),
        ],
        ids=["shortened", "missing", "no-manifest", "half-manifest", "older-converter"],
    )
    def test_a_partial_or_old_directory_is_redone(
        self, source: Path, damage: Callable[[Path], Any]
    ) -> None:
        before = open_checkpoint(source, torch.float32)
        damage(before.directory)
        after = open_checkpoint(source, torch.float32)
        assert after.fingerprint == before.fingerprint
        assert torch.equal(
            after.tensor("model.norm.weight"), torch.from_numpy(TINY.tensors()["model.norm.weight"])
        )

    def test_what_a_killed_conversion_left_is_swept(self, source: Path) -> None:
        left_over = source.parent / "tiny.gguf.converted" / ".converting-x" / "new"
        left_over.mkdir(parents=True)
        (left_over / "model.safetensors").write_bytes(b"half")
        directory = convert_once(source, torch.float32)
        assert sorted(path.name for path in directory.parent.iterdir()) == [".lock", "float32"]

    def test_a_failed_conversion_leaves_nothing(self, tmp_path: Path) -> None:
        source = TinyModel(architecture="gemma").write(tmp_path / "m.gguf")
        with pytest.raises(ModelLoadError, match="gemma"):
            convert_once(source, torch.float32)
        assert [path.name for path in (tmp_path / "m.gguf.converted").iterdir()] == [".lock"]

    def test_several_may_start_at_once(self, source: Path) -> None:
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda _: open_checkpoint(source, torch.float32), range(4)))
        assert len({checkpoint.directory for checkpoint in found}) == 1
        for checkpoint in found:
            assert set(checkpoint.names) == set(TINY.tensors())
        names = sorted(path.name for path in found[0].directory.parent.iterdir())
        assert names == [".lock", "float32"]


def test_large_weights_are_cut_into_shards(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = open_checkpoint(source, torch.float32)
    monkeypatch.setattr(conversion, "_MAX_SHARD_BYTES", 20_000)
    directory = convert_once(source, torch.float32, source.parent / "elsewhere")
    shards = sorted(path.name for path in directory.glob("*.safetensors"))
    assert len(shards) > 2
    assert shards[0] == f"model-00001-of-{len(shards):05}.safetensors"
    sharded = open_checkpoint(directory, torch.float32)
    assert set(sharded.names) == set(whole.names)
    for name in whole.names:
        assert torch.equal(sharded.tensor(name), whole.tensor(name))


def test_a_conversion_dir_may_hold_files_of_one_name(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    found = []
    for number in (1, 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = replace(TINY, seed=number).write(folder / "m.gguf")
        found.append(open_checkpoint(path, torch.float32, cache))
        assert list(folder.iterdir()) == [path], "nothing is written beside the file"
    assert found[0].directory != found[1].directory
    assert found[0].fingerprint != found[1].fingerprint


def test_the_fingerprint_follows_the_bytes_not_the_place(tmp_path: Path) -> None:
    here = open_checkpoint(TINY.write(tmp_path / "a.gguf"), torch.float32)
    there = open_checkpoint(TINY.write(tmp_path / "b.gguf"), torch.float32)
    other_dtype = open_checkpoint(tmp_path / "a.gguf", torch.float16)
    assert here.fingerprint == there.fingerprint
    assert here.fingerprint != other_dtype.fingerprint
    assert open_checkpoint(here.directory, torch.float32).fingerprint == here.fingerprint


def test_without_a_place_to_write_the_error_says_so(source: Path) -> None:
    in_the_way = source.parent / "file"
    in_the_way.write_text("")
    with pytest.raises(ModelLoadError, match="cannot convert"):
        convert_once(source, torch.float32, in_the_way)


class TestRefused:
    @pytest.mark.parametrize(
        ("model", "words"),
        [
            (TinyModel(architecture="gemma"), "architecture 'gemma'"),
            (TinyModel(architecture="phi3"), "architecture 'phi3'"),
            (TinyModel(metadata={"expert_count": 8}), "experts"),
            (TinyModel(metadata={"attention.sliding_window": 64}), "attention.sliding_window"),
            (TinyModel(metadata={"rope.scaling.type": "yarn"}), "'yarn'"),
            (TinyModel(metadata={"attention.key_length": 16}), "16 \\(keys\\)"),
            (TinyModel(metadata={"rope.dimension_count": 4}), "4 \\(rotated\\)"),
            (TinyModel(metadata={"block_count": 0}), "block_count"),
            (TinyModel(metadata={"context_length": None}), "context_length"),
            (TinyModel(metadata={"attention.head_count_kv": 4}), "16 rows, not 4 heads"),
            (TinyModel(extra_tensors={"blk.0.ffn_gate_exps.weight": np.ones((2, 2), "f")}), "exps"),
            (TinyModel(extra_tensors={"rope_freqs.weight": np.full(4, 3, "f")}), "rope factors"),
            (TinyModel(vocabulary=byte_level("gemma4")), "pre-tokenizer 'gemma4'"),
            (TinyModel(general={"tokenizer.ggml.model": "t5"}), "tokenizer 't5'"),
            (TinyModel(general={"tokenizer.ggml.tokens": ["a", "a"]}), "twice"),
            (TinyModel(general={"tokenizer.ggml.token_type": [1]}), "1 types"),
            (TinyModel(general={"tokenizer.ggml.merges": ["q zz"]}), "vocabulary is unusable"),
            (TinyModel(general={"tokenizer.ggml.eos_token_id": 99_999}), "outside the vocabulary"),
            (TinyModel(general={"split.count": 2}), "several files"),
        ],
    )
    def test_what_is_not_understood(self, tmp_path: Path, model: TinyModel, words: str) -> None:
        with pytest.raises(ModelLoadError, match=words):
            convert_once(model.write(tmp_path / "m.gguf"), torch.float32)

    @pytest.mark.parametrize("kept", [0, 3, 100, 2_000, -5_000])
    def test_a_damaged_file(self, source: Path, kept: int) -> None:
        source.write_bytes(source.read_bytes()[:kept])
        with pytest.raises(ModelLoadError):
            convert_once(source, torch.float32)

    @given(data=st.data())
    def test_any_damage_is_an_error_or_harmless(
        self, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
    ) -> None:
        """Bytes of the header are changed at random: it must end, and with our error if any."""
        folder = tmp_path_factory.mktemp("damaged")
        content = bytearray(TINY.write(folder / "m.gguf").read_bytes())
        header = len(content) - sum(values.nbytes for values in TINY.tensors().values())
        for _ in range(data.draw(st.integers(1, 4))):
            content[data.draw(st.integers(4, header))] = data.draw(st.integers(0, 255))
        (folder / "m.gguf").write_bytes(content)
        with contextlib.suppress(ModelLoadError):
            convert_once(folder / "m.gguf", torch.float32)

    def test_a_claim_of_more_entries_than_there_are(self, tmp_path: Path) -> None:
        path = TINY.write(tmp_path / "m.gguf")
        count = len(TINY.vocabulary.types).to_bytes(8, "little")
        content = path.read_bytes()
        at = content.index(b"tokenizer.ggml.token_type") + len("tokenizer.ggml.token_type") + 8
        assert content[at : at + 8] == count
        path.write_bytes(content[:at] + (2**60).to_bytes(8, "little") + content[at + 8 :])
        with pytest.raises(ModelLoadError, match="shorter than it says"):
            convert_once(path, torch.float32)

    def test_a_file_that_is_none(self, tmp_path: Path) -> None:
        path = tmp_path / "m.gguf"
        path.write_bytes(b"PK\x03\x04" + bytes(100))
        with pytest.raises(ModelLoadError, match="not a readable GGUF file"):
            convert_once(path, torch.float32)

    def test_values_that_the_dtype_cannot_hold(self, tmp_path: Path) -> None:
        model = TinyModel(extra_tensors={"blk.0.attn_norm.weight": np.full(HIDDEN, 1e30, "f")})
        path = model.write(tmp_path / "m.gguf")
        assert convert_once(path, torch.bfloat16).is_dir()
        with pytest.raises(ModelLoadError, match=r"input_layernorm\.weight .* not finite"):
            convert_once(path, torch.float16)


class TestRope:
    def config(self, tmp_path: Path, model: TinyModel) -> dict[str, Any]:
        return open_checkpoint(model.write(tmp_path / "m.gguf"), torch.float32).config

    @pytest.mark.parametrize("factor", [8.0, 32.0])
    def test_llama3_scaling_is_recovered_from_its_factors(
        self, tmp_path: Path, factor: float
    ) -> None:
        factors = llama3_factors(HEAD_DIM, 500_000.0, factor).astype(np.float32)
        model = TinyModel(
            metadata={"rope.freq_base": 500_000.0}, extra_tensors={"rope_freqs.weight": factors}
        )
        config = self.config(tmp_path, model)
        assert config["rope_scaling"] == {
            "rope_type": "llama3",
            "factor": factor,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        }
        assert config["rope_theta"] == 500_000.0

    @pytest.mark.parametrize(
        "metadata",
        [
            {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0},
            {"rope.scale_linear": 4.0},
        ],
    )
    def test_linear_scaling(self, tmp_path: Path, metadata: dict[str, Any]) -> None:
        config = self.config(tmp_path, TinyModel(metadata=metadata))
        assert config["rope_scaling"] == {"rope_type": "linear", "factor": 4.0}
