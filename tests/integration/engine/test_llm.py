"""The engine in a script, with the real model."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import LLM, SamplingParams
from engine.errors import InvalidRequest, PromptTooLong
from engine.request import FinishReason

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

GREEDY = SamplingParams(max_tokens=12, temperature=0.0)
SYSTEM = "You answer from the numbered passages only, and cite them. " + " ".join(
    f"Rule {number}: a sentence that no passage supports is left out, however likely it seems."
    for number in range(1, 16)
)


@pytest.fixture(scope="module")
def llm(smollm2: Path) -> Iterator[LLM]:
    with LLM(smollm2, device="cpu", threads=1, max_num_seqs=4, max_waiting=2) as llm:
        yield llm


def test_completes_prompts_in_order(llm: LLM) -> None:
    """More of them than the engine takes at once."""
    prompts = ["The capital of France is", "2 + 2 =", "The opposite of hot is"] * 3
    completions = llm.generate(prompts, GREEDY)
    assert "Paris" in completions[0].text
    assert "cold" in completions[2].text
    assert [one.text for one in completions] == [one.text for one in completions[:3]] * 3
    assert all(one.finish_reason is not FinishReason.ERROR for one in completions)
    assert completions[0].usage.num_completion_tokens == len(completions[0].token_ids)


def test_takes_token_ids_and_parameters_for_each(llm: LLM) -> None:
    (text,) = llm.generate(["The capital of France is"], GREEDY)
    ids = llm.encode("The capital of France is")
    short, stopped = llm.generate(
        [ids, ids],
        [
            SamplingParams(max_tokens=2, temperature=0.0),
            SamplingParams(max_tokens=12, temperature=0.0, stop=("Paris",)),
        ],
    )
    assert text.token_ids[:2] == short.token_ids
    assert stopped.finish_reason is FinishReason.STOP
    assert text.text.startswith(stopped.text + "Paris")


def test_chats(llm: LLM) -> None:
    question = [{"role": "user", "content": "What is the capital of France?"}]
    (alone,) = llm.chat(question, GREEDY)
    both = llm.chat([question, [{"role": "user", "content": "Say hello."}]], GREEDY)
    assert "Paris" in alone.text
    assert both[0].text == alone.text
    assert both[1].text != alone.text


def test_refuses_what_cannot_work(llm: LLM) -> None:
    with pytest.raises(InvalidRequest):
        llm.generate("one prompt, not a list")
    with pytest.raises(InvalidRequest, match="2 prompts, 1"):
        llm.generate(["a", "b"], [GREEDY])
    with pytest.raises(PromptTooLong):
        llm.generate([[1], [1] * 100_000], GREEDY)
    assert llm.generate([[1]], GREEDY)[0].token_ids  # the first of those was aborted
    assert llm.stats().num_used_blocks == 0


def test_a_shared_system_prompt_is_computed_once(
    llm: LLM, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second question finds the 300 tokens before it, and is answered sooner."""
    num_system = len(llm.encode(SYSTEM))
    assert 300 <= num_system <= 340
    cold, warm = (
        llm.chat(
            [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}], GREEDY
        )[0]
        for question in ("How long is the notice period?", "At what pressure does it open?")
    )
    assert cold.usage.num_cached_tokens < 16
    assert warm.usage.num_cached_tokens >= 288
    assert cold.timings.first_token_s is not None
    assert warm.timings.first_token_s is not None
    with capsys.disabled():
        sys.stdout.write(
            f"\nfirst token: {cold.timings.first_token_s * 1e3:.0f} ms cold, "
            f"{warm.timings.first_token_s * 1e3:.0f} ms with "
            f"{warm.usage.num_cached_tokens} of {warm.usage.num_prompt_tokens} tokens cached\n"
        )
