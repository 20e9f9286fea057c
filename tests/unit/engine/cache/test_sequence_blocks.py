"""Prefix match, growth, commit, copy-on-write and the order of freeing."""

import pytest

from engine.cache.blocks import BlockPool
from engine.cache.integrity import check_integrity
from engine.cache.sequence_blocks import SequenceBlocks
from engine.request import Request
from engine.sampling_params import SamplingParams

SIZE = 4


class World:
    """`num_blocks` usable blocks of four tokens, and requests that compute without a model."""

    def __init__(self, num_blocks: int = 16, *, enable_prefix_caching: bool = True) -> None:
        self.pool = BlockPool(num_blocks + 1, SIZE)
        self.blocks = SequenceBlocks(self.pool, enable_prefix_caching=enable_prefix_caching)
        self.num_requests = 0

    def request(self, prompt: list[int], *, salt: bytes = b"", num_shared: int = 0) -> Request:
        self.num_requests += 1
        return Request(
            f"r{self.num_requests}",
            prompt,
            SamplingParams(),
            salt=salt,
            num_shared_prefix_tokens=num_shared,
        )

    def admitted(self, prompt: list[int], *, salt: bytes = b"", num_shared: int = 0) -> Request:
        request = self.request(prompt, salt=salt, num_shared=num_shared)
        assert self.blocks.admit(request)
        return request

    def computed(self, prompt: list[int], *, salt: bytes = b"", num_shared: int = 0) -> Request:
        """Admitted, its whole prompt computed."""
        request = self.admitted(prompt, salt=salt, num_shared=num_shared)
        self.blocks.finish_copies()
        self.blocks.commit(request, len(prompt))
        return request

    def cache(self, prompt: list[int], *, salt: bytes = b"", num_shared: int = 0) -> None:
        self.blocks.free(self.computed(prompt, salt=salt, num_shared=num_shared))


def tokens(num: int, start: int = 0) -> list[int]:
    return list(range(start, start + num))


def test_admission_takes_blocks_for_the_whole_prompt() -> None:
    world = World()
    request = world.admitted(tokens(10))
    assert len(request.block_table) == 3
    assert (request.num_computed_tokens, request.num_cached_tokens) == (0, 0)


def test_a_prefix_is_shared_and_only_the_rest_is_new() -> None:
    world = World()
    first = world.computed(tokens(10))
    second = world.admitted([*tokens(9), 99, 98])
    assert second.block_table[:2] == first.block_table[:2]
    assert second.block_table[2] != first.block_table[2], "the third block is not full"
    assert second.num_computed_tokens == second.num_cached_tokens == 8
    assert (world.blocks.prefix_query_tokens, world.blocks.prefix_hit_tokens) == (21, 8)
    check_integrity(world.blocks, [first, second])


def test_tokens_match_only_at_the_same_place_behind_the_same_prefix() -> None:
    world = World()
    world.cache(tokens(8))
    assert world.admitted([*tokens(8, start=4), 1]).num_cached_tokens == 0
    assert world.admitted([9, *tokens(8)]).num_cached_tokens == 0


def test_blocks_filled_by_output_tokens_are_found_by_the_next_turn() -> None:
    world = World()
    request = world.computed(tokens(6))
    for token_id in (50, 51, 52):
        request.output_token_ids.append(token_id)
        world.blocks.grow(request)
        world.blocks.commit(request, request.num_tokens)
    world.blocks.free(request)
    follow_up = world.admitted([*tokens(6), 50, 51, 52, 60, 61])
    assert follow_up.num_cached_tokens == 8


def test_growth_takes_a_block_only_when_the_last_one_is_full() -> None:
    world = World()
    request = world.computed(tokens(7))
    table = list(request.block_table)
    request.output_token_ids.append(1)
    assert world.blocks.num_blocks_short(request) == 0
    world.blocks.commit(request, 8)
    request.output_token_ids.append(2)
    assert world.blocks.num_blocks_short(request) == 1
    world.blocks.grow(request)
    assert request.block_table[:2] == table
    assert world.pool.is_writable(request.block_table[2])


def test_a_fully_cached_prompt_recomputes_its_last_token_in_a_copy() -> None:
    world = World()
    first = world.computed(tokens(8))
    second = world.admitted(tokens(8))
    assert second.num_computed_tokens == second.num_cached_tokens == 7
    source, copy = first.block_table[1], second.block_table[1]
    assert [*world.blocks.copies] == [(source, copy)]
    assert world.pool.is_writable(copy)
    assert not world.pool.is_writable(source)
    check_integrity(world.blocks, [first, second])

    world.blocks.finish_copies()
    world.blocks.commit(second, 8)
    assert [*world.blocks.copies] == []
    assert second.block_table == first.block_table, "the copy holds nothing new: it is let go"
    check_integrity(world.blocks, [first, second])


def test_the_source_of_a_copy_cannot_be_evicted_before_the_step() -> None:
    world = World(num_blocks=4)
    world.cache(tokens(8))
    request = world.admitted(tokens(8))
    ((source, _),) = world.blocks.copies
    other = world.admitted(tokens(4, start=50))
    assert world.pool.num_free == 0
    assert source not in other.block_table
    check_integrity(world.blocks, [request, other])


def test_without_room_for_a_copy_the_last_block_is_computed_again() -> None:
    world = World(num_blocks=2)
    world.cache(tokens(8))
    request = world.admitted(tokens(8))
    assert request.num_computed_tokens == 4
    assert world.blocks.copies == ()
    world.blocks.commit(request, 8)
    check_integrity(world.blocks, [request])


def test_a_request_that_ends_before_its_step_takes_its_copy_along() -> None:
    world = World()
    world.cache(tokens(8))
    request = world.admitted(tokens(8))
    world.blocks.free(request)
    assert world.blocks.copies == ()
    assert world.pool.num_referenced == 0
    check_integrity(world.blocks, [])


def test_a_copy_waits_until_a_step_has_done_it() -> None:
    """A plan that was lost must be made again with the copy."""
    world = World()
    world.cache(tokens(8))
    world.admitted(tokens(8))
    before = world.blocks.copies
    world.admitted(tokens(5, start=70))
    assert world.blocks.copies == before


def test_requests_that_computed_the_same_prefix_at_once_end_up_with_one_copy() -> None:
    world = World()
    first, second = world.admitted(tokens(9)), world.admitted(tokens(9))
    assert set(first.block_table).isdisjoint(second.block_table)
    used = world.pool.num_referenced
    world.blocks.commit(first, 9)
    world.blocks.commit(second, 9)
    assert first.block_table[:2] == second.block_table[:2]
    assert world.pool.num_referenced == used - 2
    check_integrity(world.blocks, [first, second])


def test_nothing_changes_when_there_is_no_room() -> None:
    world = World(num_blocks=4)
    world.cache(tokens(8))
    request = world.request(tokens(12))
    assert not world.blocks.admit(request, headroom=2)
    assert request.block_table == []
    assert (world.pool.num_cached, world.pool.num_referenced) == (2, 0)
    assert world.blocks.admit(request, headroom=1)
    assert (request.num_computed_tokens, world.pool.num_free) == (8, 1)


def test_cached_blocks_that_are_matched_count_as_taken() -> None:
    """They are free until they are shared: counting them twice would overbook the pool."""
    world = World(num_blocks=3)
    world.cache(tokens(8))
    assert not world.blocks.admit(world.request(tokens(16)))
    assert world.pool.num_referenced == 0


def test_chains_are_evicted_from_their_tails() -> None:
    world = World(num_blocks=6)
    world.cache(tokens(16))  # four blocks, then two blank ones
    held = world.admitted(tokens(12, start=100))  # takes those and one cached block
    survivor = world.request([*tokens(16), 1])
    assert len(world.blocks.match_prefix(survivor)) == 3, "the deepest went first"
    check_integrity(world.blocks, [held])


def test_a_child_whose_parent_is_gone_is_no_hit() -> None:
    """Cannot happen with our order of eviction; the walk does not rely on it."""
    world = World()
    request = world.computed(tokens(12))
    first = request.block_table[0]
    world.blocks.free(request)
    world.pool._forget(first)
    assert world.blocks.match_prefix(world.request([*tokens(12), 1])) == []


def test_without_prefix_caching_nothing_is_shared_or_kept() -> None:
    world = World(enable_prefix_caching=False)
    world.cache(tokens(8))
    assert world.pool.num_cached == 0
    assert world.admitted(tokens(8)).num_cached_tokens == 0


def test_a_preempted_request_finds_its_own_blocks_and_is_counted_once() -> None:
    world = World()
    request = world.computed(tokens(9))
    queries = world.blocks.prefix_query_tokens
    world.blocks.free(request)
    request.num_preemptions = 1
    assert world.blocks.admit(request)
    assert request.num_computed_tokens == 8
    assert request.num_cached_tokens == 0, "what the first admission found"
    assert world.blocks.prefix_query_tokens == queries


# ------------------------------------------------------------------ tenants (invariant 12)


def test_tenants_share_the_shared_prefix_and_nothing_else() -> None:
    world = World()
    system, passages = tokens(10), tokens(20, start=100)
    world.cache(system + passages, salt=b"tenant-a", num_shared=len(system))

    same = world.request(system + passages, salt=b"tenant-a", num_shared=len(system))
    other = world.request(system + passages, salt=b"tenant-b", num_shared=len(system))
    unsalted = world.request(system + passages, num_shared=len(system))
    assert len(world.blocks.match_prefix(same)) == 7
    assert len(world.blocks.match_prefix(other)) == 2, "the third block reaches past the prefix"
    assert len(world.blocks.match_prefix(unsalted)) == 2


def test_a_tenant_without_a_shared_prefix_shares_nothing() -> None:
    world = World()
    world.cache(tokens(16), salt=b"tenant-a")
    for salt in (b"tenant-b", b"", b"tenant-"):
        assert world.blocks.match_prefix(world.request(tokens(17), salt=salt)) == []
    # Nor does claiming that it is all shared open the others' blocks.
    liar = world.request(tokens(17), salt=b"tenant-b", num_shared=17)
    assert world.blocks.match_prefix(liar) == []


def test_output_of_one_tenant_is_not_found_by_another() -> None:
    world = World()
    request = world.computed(tokens(8), salt=b"tenant-a", num_shared=1000)
    request.output_token_ids.extend([50, 51, 52, 53])
    world.blocks.grow(request)
    world.blocks.commit(request, 12)
    prompt = [*tokens(8), 50, 51, 52, 53, 1]
    thief = world.request(prompt, salt=b"tenant-b", num_shared=1000)
    assert len(world.blocks.match_prefix(thief)) == 2


@pytest.mark.parametrize("num_computed", [0, 3, 9])
def test_unshared_tokens_are_those_only_this_request_holds(num_computed: int) -> None:
    world = World()
    request = world.admitted(tokens(9))
    world.blocks.commit(request, num_computed)
    assert world.blocks.num_unshared_tokens(request) == num_computed
    if num_computed == 9:
        world.admitted([*tokens(8), 77])
        assert world.blocks.num_unshared_tokens(request) == 1
