"""Small tokenizers of both kinds, with tokens that end inside characters."""

from pathlib import Path

from tokenizers import Tokenizer as RustTokenizer

from engine.text.tokenizer import Tokenizer
from engine.weights.gguf_file import GGUFFile
from engine.weights.gguf_tokenizer import build_tokenizer
from tests.builders_gguf import NORMAL, TinyModel, byte_level, sentencepiece


def byte_level_tokenizer(folder: Path) -> RustTokenizer:
    """Every byte is a token; others are pieces of characters glued together."""
    vocabulary = byte_level()
    pieces = ["âĤ", "¬a", "ðŁĺ", "Ģ", "Ãĥ", "ĠÃ"]
    vocabulary.tokens += [piece for piece in pieces if piece not in vocabulary.tokens]
    vocabulary.types += [NORMAL] * (len(vocabulary.tokens) - len(vocabulary.types))
    path = TinyModel(vocabulary=vocabulary).write(folder / "byte-level.gguf")
    return build_tokenizer(GGUFFile(path))


def sentencepiece_tokenizer(folder: Path) -> RustTokenizer:
    path = TinyModel(vocabulary=sentencepiece()).write(folder / "sentencepiece.gguf")
    return build_tokenizer(GGUFFile(path))


def both(folder: Path) -> list[Tokenizer]:
    return [Tokenizer(byte_level_tokenizer(folder)), Tokenizer(sentencepiece_tokenizer(folder))]
