"""Chain hashes: the name under which a full block's KV can be found again.

The KV of a block depends on every token up to its end, so its name is a hash of its tokens and
its parent's name, and the root stands for the model (fingerprint and KV dtype). The chaining is
vLLM's (automatic prefix caching); with blake2b-128, collisions are rarer than hardware errors.

Salt: whether a prefix is cached shows in the time to the first token, so tenants must not share
blocks of their own text. Blocks that lie wholly inside the shared prefix of a request (its system
prompt) carry no salt and are shared by everybody; every later block carries the caller's.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.request import Request

HASH_BYTES = 16


def root_hash(model_salt: bytes) -> bytes:
    """The parent of every first block. `model_salt`: whatever makes KV differ for equal tokens."""
    return blake2b(model_salt, digest_size=HASH_BYTES, person=b"pincite.kv.root").digest()


def chain_hash(parent: bytes, token_ids: Sequence[int], salt: bytes = b"") -> bytes:
    """The name of a full block: 16 bytes. The salt's length stands before it, so that no salt and
    token list run together as another pair."""
    hasher = blake2b(parent, digest_size=HASH_BYTES, person=b"pincite.kv.block")
    hasher.update(struct.pack("<I", len(salt)))
    hasher.update(salt)
    hasher.update(struct.pack(f"<{len(token_ids)}I", *token_ids))
    return hasher.digest()


def block_salt(request: Request, index: int, block_size: int) -> bytes:
    """The salt of a request's block: none while the block ends inside the shared prefix.

    A shared prefix cannot reach past the prompt: what the model wrote is always the caller's.
    """
    num_shared = min(request.num_shared_prefix_tokens, request.num_prompt_tokens)
    return b"" if (index + 1) * block_size <= num_shared else request.salt


@dataclass(frozen=True, slots=True)
class BlockContent:
    """What a cached block holds, kept beside its name so that the name can be checked."""

    chain_hash: bytes
    parent_hash: bytes
    token_ids: tuple[int, ...]
    salt: bytes = b""

    @property
    def is_consistent(self) -> bool:
        return self.chain_hash == chain_hash(self.parent_hash, self.token_ids, self.salt)
