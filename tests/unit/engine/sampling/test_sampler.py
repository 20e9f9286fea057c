"""Sampling: what may be chosen, how often, and that nothing depends on the neighbours."""

from collections import Counter
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.request import Request
from engine.sampling.filters import keep_top_p
from engine.sampling.randomness import uniform
from engine.sampling.sampler import Sampler, _draw, next_token_weights
from engine.sampling_params import SamplingParams
from engine.step import NO_TOKEN

VOCAB = 12
CPU = torch.device("cpu")
SAMPLER = Sampler(VOCAB, CPU)

# Halves make many ties; none may depend on how a sort breaks them.
logits_rows = st.lists(
    st.integers(-8, 8).map(lambda half: half / 2), min_size=VOCAB, max_size=VOCAB
)


def request(
    sampling: SamplingParams,
    *,
    output: Sequence[int] = (),
    prompt: Sequence[int] = (1,),
    seed: int = 0,
) -> Request:
    made = Request("r", list(prompt), sampling, seed=seed, end_token_ids=frozenset({2}))
    made.output_token_ids.extend(output)
    return made


def choose(logits: Sequence[float], made: Request) -> int:
    return SAMPLER.sample(torch.tensor([logits]), [made])[0]


def naive_kept(weights: list[float], sampling: SamplingParams) -> set[int]:
    """Top-k, top-p of what is left, min-p, by the definitions; equals are kept together."""
    kept = set(range(len(weights)))
    if 0 < sampling.top_k < len(weights):
        border = sorted(weights, reverse=True)[sampling.top_k - 1]
        kept = {one for one in kept if weights[one] >= border}
    if sampling.top_p < 1.0:
        wanted = sum(weights[one] for one in sorted(kept)) * sampling.top_p
        reached = 0.0
        border = 0.0
        for weight in sorted((weights[one] for one in kept), reverse=True):
            reached += weight
            border = weight
            if reached >= wanted:
                break
        kept = {one for one in kept if weights[one] >= border}
    return {one for one in kept if weights[one] >= sampling.min_p}


@given(
    logits=logits_rows,
    top_k=st.integers(-1, VOCAB + 3),
    # not on a border that rounding could move: weights are powers of sqrt(e), shares of 1/997
    top_p=st.integers(1, 997).map(lambda share: share / 997),
    min_p=st.integers(0, 100).map(lambda share: share / 100),
    temperature=st.sampled_from([0.5, 1.0, 2.0]),
)
def test_keeps_what_the_definitions_keep(
    logits: list[float], top_k: int, top_p: float, min_p: float, temperature: float
) -> None:
    sampling = SamplingParams(temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p)
    row = torch.tensor(logits)
    unfiltered = next_token_weights(row, SamplingParams(temperature=temperature)).tolist()
    weights = next_token_weights(row, sampling).tolist()
    kept = {token_id for token_id, weight in enumerate(weights) if weight > 0}
    assert kept == naive_kept(unfiltered, sampling)
    assert all(weights[one] == unfiltered[one] for one in kept)
    assert choose(logits, request(sampling, seed=top_k)) in kept


@pytest.mark.parametrize("share", [0.3, 0.9, 0.999])
def test_finds_a_nucleus_beyond_the_first_look(share: float) -> None:
    row = torch.randn(5000, generator=torch.Generator().manual_seed(5)) * 0.01  # nearly flat
    kept = int((next_token_weights(row, SamplingParams(top_p=share)) > 0).sum())
    assert abs(kept - share * 5000) < 60


def test_a_nucleus_ends_where_its_share_is_reached() -> None:
    weights = torch.tensor([0.25, 1.0, 0.25, 0.5])
    assert keep_top_p(weights, 0.5).tolist() == [0.0, 1.0, 0.0, 0.0]
    assert keep_top_p(weights, 0.51).tolist() == [0.0, 1.0, 0.0, 0.5]
    assert keep_top_p(weights, 0.76).tolist() == weights.tolist()  # equals are kept together


@pytest.mark.parametrize(("point", "token_id"), [(0.0, 1), (0.4, 1), (0.5, 3), (1 - 2**-53, 3)])
def test_a_draw_never_falls_on_a_token_without_weight(point: float, token_id: int) -> None:
    assert _draw(torch.tensor([0.0, 0.5, 0.0, 0.5, 0.0]), point) == token_id


def test_greedy_takes_the_lowest_id_among_equals() -> None:
    logits = [0.0, 3.0, 1.0, 3.0, 3.0, *[0.0] * 7]
    assert choose(logits, request(SamplingParams(temperature=0.0))) == 1
    assert choose(logits, request(SamplingParams(temperature=0.0, presence_penalty=0.5))) == 1


def test_padding_of_the_vocabulary_is_never_sampled() -> None:
    logits = torch.zeros(1, VOCAB + 4)
    logits[0, VOCAB + 1] = 50.0
    assert SAMPLER.sample(logits, [request(SamplingParams(temperature=0.0))]) == [0]
    draws = {SAMPLER.sample(logits, [request(SamplingParams(), seed=s)])[0] for s in range(100)}
    assert max(draws) < VOCAB


def test_logits_that_are_not_numbers_choose_nothing_and_spare_the_neighbours() -> None:
    logits = torch.zeros(3, VOCAB)
    logits[0, 4] = 1.0
    logits[1, 5] = torch.nan
    logits[2] = -torch.inf
    rows = [request(SamplingParams(temperature=0.0)) for _ in range(3)]
    assert SAMPLER.sample(logits, rows) == [4, NO_TOKEN, NO_TOKEN]


@pytest.mark.parametrize("temperature", [1e-38, 1e-45, 0.001])
def test_a_tiny_temperature_is_nearly_greedy(temperature: float) -> None:
    logits = [0.0, 1.0, *[0.5] * (VOCAB - 2)]
    made = request(SamplingParams(temperature=temperature))
    assert choose(logits, made) == 1


# ------------------------------------------------------------------------------ frequencies


@pytest.mark.parametrize(
    "sampling",
    [
        SamplingParams(),
        SamplingParams(temperature=0.6),
        SamplingParams(temperature=1.5, top_k=5),
        SamplingParams(top_p=0.8),
        SamplingParams(min_p=0.2),
        SamplingParams(temperature=1.2, top_k=8, top_p=0.9, min_p=0.05),
        SamplingParams(token_mask=lambda _: [0, 3, 5, 7, 11]),
    ],
)
def test_tokens_come_as_often_as_the_filtered_distribution_says(sampling: SamplingParams) -> None:
    """Chi-square over 4,000 seeds: the statistic stays under its 99.99 % quantile for 11 degrees of
    freedom (37.4)."""
    row = torch.linspace(-1.5, 1.5, VOCAB)[torch.randperm(VOCAB, generator=_generator())]
    weights = next_token_weights(row, sampling)
    if sampling.token_mask is not None:
        allowed = torch.zeros(VOCAB, dtype=torch.bool)
        allowed[list(sampling.token_mask([]) or [])] = True
        weights = weights.where(allowed, 0.0)
    expected = (weights / weights.sum() * 4000).tolist()
    drawn = Counter(
        SAMPLER.sample(row[None], [request(sampling, seed=seed)])[0] for seed in range(4000)
    )
    assert all(expected[token_id] > 0 for token_id in drawn)
    statistic = sum(
        (drawn[token_id] - wanted) ** 2 / wanted
        for token_id, wanted in enumerate(expected)
        if wanted
    )
    assert statistic < 37.4


def test_numbers_are_uniform_along_positions_and_seeds_are_streams_of_their_own() -> None:
    numbers = [uniform(7, position) for position in range(4000)]
    tenths = Counter(int(number * 10) for number in numbers)
    assert sum((count - 400) ** 2 / 400 for count in tenths.values()) < 33.7  # 9 degrees, 99.99 %
    assert len(set(numbers) | {uniform(8, position) for position in range(4000)}) == 8000
    assert uniform(-1, 0) != uniform(1, 0)  # any integer is a seed
    assert 0.0 <= uniform(2**80 + 5, 3) < 1.0


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(11)


# ------------------------------------------------------------------------------ neighbours

any_sampling = st.builds(
    SamplingParams,
    temperature=st.sampled_from([0.0, 0.7, 1.0]),
    top_k=st.sampled_from([0, 3]),
    top_p=st.sampled_from([1.0, 0.7]),
    min_p=st.sampled_from([0.0, 0.3]),
    presence_penalty=st.sampled_from([0.0, 1.0]),
    repetition_penalty=st.sampled_from([1.0, 1.3]),
    min_tokens=st.sampled_from([0, 4]),
)


@given(st.lists(st.tuples(any_sampling, st.integers(0, 99)), min_size=1, max_size=5), st.data())
def test_a_row_does_not_depend_on_the_batch(
    made: list[tuple[SamplingParams, int]], data: st.DataObject
) -> None:
    rows = torch.tensor([data.draw(logits_rows) for _ in made])
    untouched = rows.clone()
    output = data.draw(st.lists(st.integers(0, VOCAB - 1), max_size=6))
    requests = [request(sampling, output=output, seed=seed) for sampling, seed in made]
    together = SAMPLER.sample(rows, requests)
    alone = [
        SAMPLER.sample(rows[index : index + 1], [one])[0] for index, one in enumerate(requests)
    ]
    order = data.draw(st.permutations(range(len(made))))
    shuffled = SAMPLER.sample(rows[list(order)], [requests[index] for index in order])
    assert together == alone
    assert shuffled == [together[index] for index in order]
    assert torch.equal(rows, untouched)


def test_the_stream_depends_on_seed_and_position_only() -> None:
    flat = torch.zeros(1, VOCAB)

    def stream(seed: int) -> list[int]:
        made = request(SamplingParams(), seed=seed)
        for _ in range(20):
            made.output_token_ids.append(SAMPLER.sample(flat, [made])[0])
        return made.output_token_ids

    first = stream(3)
    assert stream(3) == first
    assert len(set(first)) > 5
    assert stream(4) != first
    resumed = request(SamplingParams(), output=first[:9], seed=3)  # as after a preemption
    assert SAMPLER.sample(flat, [resumed]) == [first[9]]


# ------------------------------------------------------------------------------ penalties


def test_penalties_are_what_they_are_documented_to_be() -> None:
    logits = [2.0, -2.0, 1.0, *[-9.0] * (VOCAB - 3)]

    def greedy(**penalties: float) -> Request:
        sampling = SamplingParams(temperature=0.0, **penalties)  # type: ignore[arg-type]
        return request(sampling, output=[0, 0, 1], prompt=[2, 5000])

    assert choose(logits, greedy()) == 0
    assert choose(logits, greedy(presence_penalty=0.9)) == 0  # 1.1 against 1.0: once, not twice
    assert choose(logits, greedy(presence_penalty=1.1)) == 2
    assert choose(logits, greedy(frequency_penalty=0.45)) == 0  # 2 - 2 * 0.45
    assert choose(logits, greedy(frequency_penalty=0.55)) == 2
    assert choose(logits, greedy(repetition_penalty=1.9)) == 0  # the prompt's token 2 shrinks too
    assert choose(logits, greedy(repetition_penalty=4.0, presence_penalty=0.6)) == 2
    below = [-1.0, -1.5, *[-9.0] * (VOCAB - 2)]
    again = request(SamplingParams(temperature=0.0, repetition_penalty=1.6), output=[0], prompt=[5])
    assert choose(below, again) == 1  # negative logits move away from 0


def test_a_penalty_that_overflows_chooses_nothing() -> None:
    sampling = SamplingParams(repetition_penalty=1e-45)
    logits = [2.0, *[0.0] * (VOCAB - 1)]
    assert choose(logits, request(sampling, output=[0])) == NO_TOKEN


# ------------------------------------------------------------------------------ masks


@given(
    logits=logits_rows,
    allowed=st.sets(st.integers(-3, VOCAB + 3)),
    sampling=any_sampling,
    seed=st.integers(0, 999),
    output=st.lists(st.integers(0, VOCAB - 1), max_size=5),
)
def test_a_masked_token_is_never_sampled(
    logits: list[float], allowed: set[int], sampling: SamplingParams, seed: int, output: list[int]
) -> None:
    told: list[Sequence[int]] = []

    def mask(so_far: Sequence[int]) -> list[int]:
        told.append(so_far)
        return sorted(allowed)

    masked = SamplingParams(
        temperature=sampling.temperature,
        top_k=sampling.top_k,
        top_p=sampling.top_p,
        min_p=sampling.min_p,
        presence_penalty=sampling.presence_penalty,
        repetition_penalty=sampling.repetition_penalty,
        min_tokens=sampling.min_tokens,
        token_mask=mask,
    )
    chosen = choose(logits, request(masked, output=output, seed=seed))
    possible = allowed & set(range(VOCAB))
    assert chosen in possible if possible else chosen == NO_TOKEN
    assert [list(one) for one in told] == [output]


def test_a_mask_of_none_allows_everything() -> None:
    logits = [float(token_id) for token_id in range(VOCAB)]
    free = SamplingParams(temperature=0.0, token_mask=lambda _: None)
    assert choose(logits, request(free)) == VOCAB - 1


def test_a_mask_that_raises_chooses_nothing_and_spares_the_neighbours(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(_: Sequence[int]) -> list[int]:
        raise ValueError("no grammar")

    rows = torch.zeros(2, VOCAB)
    plain = request(SamplingParams(temperature=0.0))
    failing = request(SamplingParams(temperature=0.0, token_mask=broken))
    assert SAMPLER.sample(rows, [failing, plain]) == [NO_TOKEN, 0]
    assert "no grammar" in caplog.text


def test_no_end_token_before_min_tokens() -> None:
    logits = [0.0, 1.0, 9.0, *[0.0] * (VOCAB - 3)]  # 2 ends the output
    sampling = SamplingParams(temperature=0.0, min_tokens=2)
    assert choose(logits, request(sampling)) == 1
    assert choose(logits, request(sampling, output=[1])) == 1
    assert choose(logits, request(sampling, output=[1, 1])) == 2
    # a mask that allows nothing but the end is stronger
    only_end = SamplingParams(temperature=0.0, min_tokens=2, token_mask=lambda _: [2])
    assert choose(logits, request(only_end)) == 2
    either = SamplingParams(temperature=0.0, min_tokens=2, token_mask=lambda _: [2, 0])
    assert choose(logits, request(either)) == 0
