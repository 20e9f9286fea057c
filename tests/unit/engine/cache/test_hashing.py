"""Chain hashes name the whole prefix, the model and, past the shared prefix, the caller."""

from hypothesis import given
from hypothesis import strategies as st

from engine.cache.hashing import HASH_BYTES, BlockContent, block_salt, chain_hash, root_hash
from engine.request import Request
from engine.sampling_params import SamplingParams

ROOT = root_hash(b"model-a/float32")

block_tokens = st.lists(st.integers(0, 2**31), min_size=1, max_size=4)


def request(num_prompt: int, num_shared: int, num_output: int = 0) -> Request:
    return Request(
        "r",
        list(range(num_prompt)),
        SamplingParams(),
        salt=b"tenant",
        num_shared_prefix_tokens=num_shared,
        output_token_ids=[1] * num_output,
    )


def test_a_hash_has_16_bytes_and_does_not_change_between_versions() -> None:
    """A tier that outlives the process finds blocks by these bytes."""
    assert len(ROOT) == HASH_BYTES == 16
    assert root_hash(b"").hex() == "124c89d5d481ff2898ea1231bad36b3a"
    assert chain_hash(root_hash(b""), [1, 2, 3]).hex() == "7bee7e303f3747a7e8390e5a47f3c7d0"


@given(
    st.tuples(st.binary(max_size=3), block_tokens), st.tuples(st.binary(max_size=3), block_tokens)
)
def test_another_salt_or_other_tokens_give_another_hash(
    one: tuple[bytes, list[int]], other: tuple[bytes, list[int]]
) -> None:
    hashes = [chain_hash(ROOT, token_ids, salt) for salt, token_ids in (one, other)]
    assert (hashes[0] == hashes[1]) == (one == other)


def test_a_salt_that_looks_like_tokens_is_not_taken_for_them() -> None:
    assert chain_hash(ROOT, [5], salt=b"\x05\0\0\0") != chain_hash(ROOT, [5, 5])
    assert chain_hash(ROOT, [7], salt=b"") != chain_hash(ROOT, [0, 7])


def test_the_hash_depends_on_every_token_before_and_on_the_model() -> None:
    def chain(root: bytes, *blocks: list[int]) -> bytes:
        for block in blocks:
            root = chain_hash(root, block)
        return root

    assert chain(ROOT, [1, 2], [3, 4]) == chain(ROOT, [1, 2], [3, 4])
    assert chain(ROOT, [1, 2], [3, 4]) != chain(ROOT, [1, 9], [3, 4])
    assert chain(ROOT, [1, 2], [3, 4]) != chain(root_hash(b"model-a/bfloat16"), [1, 2], [3, 4])


def test_salt_enters_at_the_first_block_that_reaches_past_the_shared_prefix() -> None:
    assert [block_salt(request(20, 9), index, 4) for index in range(4)] == [
        b"", b"", b"tenant", b"tenant",
    ]  # fmt: skip
    assert [block_salt(request(20, 8), index, 4) for index in range(3)] == [b"", b"", b"tenant"]
    assert block_salt(request(20, 0), 0, 4) == b"tenant"


def test_output_is_never_shared_whatever_the_caller_says() -> None:
    """A shared prefix longer than the prompt would leave the model's own words unsalted."""
    lying = request(6, 1000, num_output=10)
    assert [block_salt(lying, index, 4) for index in range(3)] == [b"", b"tenant", b"tenant"]


def test_a_content_knows_whether_its_name_is_right() -> None:
    name = chain_hash(ROOT, (1, 2), b"s")
    assert BlockContent(name, ROOT, (1, 2), b"s").is_consistent
    assert not BlockContent(name, ROOT, (1, 3), b"s").is_consistent
    assert not BlockContent(name, ROOT, (1, 2), b"").is_consistent
