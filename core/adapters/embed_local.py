"""A sentence-transformers model in this process: the only module besides the engine with torch.

Used by the model server, in the one thread that owns the model. Vectors have unit length. Nothing
is ever truncated: a text over the model's limit is refused, since its end would be unfindable.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from typing import TYPE_CHECKING, Any, Literal

from core.domain.search import EmbedderInfo
from core.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sentence_transformers import SentenceTransformer

Device = Literal["auto", "cpu", "cuda"]
Precision = Literal["auto", "fp32", "bf16"]

_FILES_OF_A_MODEL = frozenset({".json", ".safetensors", ".txt", ".model"})
_NOT_OF_THE_MODEL = frozenset({"pincite-model.json", "data_config.json"})
_WARM_UP = "How long is the notice period?"


class LocalEmbedder:
    """Implements `core.ports.models.Embedder`. Make and use it in one thread.

    Args:
        directory: a sentence-transformers model; nothing is looked up elsewhere.
        device: `auto` takes a GPU when there is one.
        threads: for the CPU's matrix products.
        precision: of the layers. `auto` is bf16 on a CPU that multiplies bf16 in hardware, where it
            is three times as fast and moves no cosine by more than .006 (tests hold it to that);
            fp32 anywhere else. Pooling and normalisation are always fp32.
        max_batch: texts that go through the layers together.

    Raises NotFound or InvalidInput for a directory without a usable model.
    """

    def __init__(
        self,
        directory: Path,
        *,
        device: Device = "auto",
        threads: int = 1,
        precision: Precision = "auto",
        max_batch: int = 8,
    ) -> None:
        if not (directory / "modules.json").is_file():
            raise NotFound(
                f"{directory} is not a sentence-transformers model: it has no modules.json",
                hint="run `pincite models fetch`, or set models.embedder to a model's directory",
            )
        os.environ["HF_HUB_OFFLINE"] = "1"  # before the import, which reads it
        import torch

        torch.set_num_threads(threads)  # OpenMP counts per thread: this must be the owner's
        self.device = _choose_device(device)
        self.precision = _choose_precision(precision, self.device)
        self._max_batch = max_batch
        self._model = _load(directory, self.device, self.precision)
        tokenizer = getattr(self._model.tokenizer, "backend_tokenizer", None)
        limit = self._model.max_seq_length
        if tokenizer is None or limit is None:
            raise InvalidInput(f"{directory} has no fast tokenizer or no token limit")
        self._tokenizer = tokenizer.from_str(tokenizer.to_str())  # our own: ST sets truncation
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.prompts: dict[str, str] = {
            name: text for name, text in self._model.prompts.items() if text
        }
        self._info = EmbedderInfo(
            model_id=directory.name,
            fingerprint=_fingerprint(directory),
            dimension=len(self.encode([_WARM_UP])[0]),
            max_tokens=int(limit)
            - max(self._prompt_tokens(name) for name in [None, *self.prompts]),
        )

    def info(self) -> EmbedderInfo:
        """`max_tokens` leaves room for the longest prompt that the model puts before a text."""
        return self._info

    def embed_questions(self, texts: Sequence[str]) -> list[list[float]]:
        return self._embed(texts, "query")

    def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
        return self._embed(texts, "passage" if "passage" in self.prompts else "document")

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text with special tokens, without a prompt. Safe in any thread."""
        return [len(encoding) for encoding in self._tokenizer.encode_batch(list(texts))]

    def encode(self, texts: Sequence[str], prompt_name: str | None = None) -> list[list[float]]:
        """Unit vectors, one a text. The caller has checked the lengths."""
        vectors = self._model.encode(
            list(texts),
            prompt=self.prompts.get(prompt_name or ""),
            batch_size=self._max_batch,
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        found: list[list[float]] = vectors.astype("float32").tolist()
        return found

    def _embed(self, texts: Sequence[str], prompt_name: str) -> list[list[float]]:
        longest = max(self.count_tokens(texts), default=0)
        if longest > self._info.max_tokens:
            raise InvalidInput(
                f"a text has {longest} tokens; the embedder takes {self._info.max_tokens}",
                hint="cut it first: a longer text would lose its end",
            )
        return self.encode(texts, prompt_name) if texts else []

    def _prompt_tokens(self, name: str | None) -> int:
        text = self.prompts.get(name or "", "")
        return len(self._tokenizer.encode(text, add_special_tokens=False)) if text else 0


def _choose_device(device: Device) -> str:
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise InvalidInput(
            "models.device is cuda, and this process sees no GPU",
            hint="set models.device to auto or cpu, or install a PyTorch with CUDA",
        )
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return device


def _choose_precision(precision: Precision, device: str) -> str:
    import torch

    if precision != "auto":
        return precision
    has_bf16 = device == "cpu" and bool(torch.cpu.get_capabilities().get("amx_bf16"))
    return "bf16" if has_bf16 else "fp32"


def _load(directory: Path, device: str, precision: str) -> SentenceTransformer:
    import torch
    from safetensors import SafetensorError
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    for name in ("transformers", "sentence_transformers"):  # advice for people who train
        logging.getLogger(name).setLevel(logging.ERROR)
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    try:
        model = SentenceTransformer(
            str(directory),
            device=device,
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs={"dtype": dtype, "use_safetensors": True},
        )
    except (OSError, ValueError, KeyError, ImportError, RuntimeError, SafetensorError) as error:
        raise InvalidInput(f"the model in {directory} cannot be loaded: {error}") from error
    layers, *rest = list(model)
    layers.register_forward_hook(_to_float32)
    for module in rest:
        module.float()
    return model.eval()


def _to_float32(_module: Any, _arguments: Any, features: dict[str, Any]) -> dict[str, Any]:
    """A mean over 256 tokens in bf16 would lose two of its three digits."""
    return {
        name: value.float() if name == "token_embeddings" else value
        for name, value in features.items()
    }


def _fingerprint(directory: Path) -> str:
    """sha256 over the names and contents of what decides the vectors."""
    digest = hashlib.sha256()
    files = sorted(
        path
        for path in directory.rglob("*")
        if path.suffix in _FILES_OF_A_MODEL and path.name not in _NOT_OF_THE_MODEL
    )
    for path in files:
        with path.open("rb") as stream:
            content = hashlib.file_digest(stream, "sha256").hexdigest()
        line = [path.relative_to(directory).as_posix(), content]
        digest.update(json.dumps(line).encode() + b"\n")
    return digest.hexdigest()
