"""What waits for the model, and in which order it is served."""

import threading

import pytest

from core.errors import Overloaded
from pincite.servers.models.errors import BackendFailed
from pincite.servers.models.queueing import (
    BatchItem,
    EmbedJob,
    Limits,
    Priority,
    WorkQueue,
)

LIMITS = Limits(
    max_waiting=100, max_batch_questions=32, max_batch_passages=4, max_batch_tokens=1000
)


def job(
    *lengths: int, priority: Priority = Priority.PASSAGE, prompt: str | None = None, name: str = "t"
) -> EmbedJob:
    return EmbedJob([f"{name}{i}" for i in range(len(lengths))], lengths, priority, prompt)


def question(*lengths: int, name: str = "q") -> EmbedJob:
    return job(*(lengths or (10,)), priority=Priority.QUESTION, name=name)


def texts(batch: list[BatchItem] | None) -> list[str]:
    assert batch is not None
    return [item.text for item in batch]


@pytest.fixture
def queue() -> WorkQueue:
    return WorkQueue(LIMITS)


def test_questions_go_before_passages_that_came_first(queue: WorkQueue) -> None:
    queue.put(job(10, 10, name="p"))
    queue.put(question())
    assert texts(queue.take()) == ["q0"]
    assert texts(queue.take()) == ["p0", "p1"]


def test_a_question_waits_for_one_batch_at_most(queue: WorkQueue) -> None:
    queue.put(job(*[100] * 20))
    assert len(texts(queue.take())) == 4
    queue.put(question())
    assert texts(queue.take()) == ["q0"]


def test_who_takes_can_give_up_waiting(queue: WorkQueue) -> None:
    assert queue.take(wait_s=0.0) == []
    queue.put(question())
    assert texts(queue.take(wait_s=0.0)) == ["q0"]


def test_passages_are_let_through_now_and_then(queue: WorkQueue) -> None:
    queue.put(job(10, name="p"))
    for number in range(20):
        queue.put(question(200, 200, 200, 200, 200, name=f"q{number}-"))
    served = [texts(queue.take()) for _ in range(10)]
    assert [batch[0] for batch in served].index("p0") == 8


def test_texts_of_like_length_go_together(queue: WorkQueue) -> None:
    queue.put(job(10, 200, 20, 190, 30, 180, 40, 170))
    assert [[item.num_tokens for item in queue.take() or []] for _ in range(2)] == [
        [200, 190, 180, 170],
        [40, 30, 20, 10],
    ]


def test_a_batch_holds_at_most_its_padded_tokens(queue: WorkQueue) -> None:
    queue.put(question(*[300] * 5))
    assert [len(texts(queue.take())) for _ in range(2)] == [3, 2]


def test_one_text_over_the_token_limit_goes_alone(queue: WorkQueue) -> None:
    queue.put(question(5000, 10))
    assert texts(queue.take()) == ["q0"]


def test_requests_share_a_batch_but_not_with_another_prompt(queue: WorkQueue) -> None:
    queue.put(job(10, name="a"))
    queue.put(job(10, name="b"))
    queue.put(job(10, prompt="query", name="c"))
    assert texts(queue.take()) == ["a0", "b0"]
    assert texts(queue.take()) == ["c0"]


def test_an_abandoned_request_is_not_served(queue: WorkQueue) -> None:
    gone, later = job(10, 10, name="gone"), job(10, name="later")
    first = job(10, name="first")
    for waiting in (first, gone, later):
        queue.put(waiting)
    gone.abandon()
    assert texts(queue.take()) == ["first0", "later0"]


def test_too_much_waiting_is_refused_level_by_level() -> None:
    queue = WorkQueue(Limits(max_waiting=3))
    queue.put(job(10, 10))
    with pytest.raises(Overloaded):
        queue.put(job(10, 10))
    queue.put(job(10))
    queue.put(question())
    assert (queue.depth(Priority.PASSAGE), queue.depth(Priority.QUESTION)) == (3, 1)


def test_a_refusal_tells_when_to_come_back() -> None:
    queue = WorkQueue(Limits(max_waiting=2))
    queue.record_speed(1000, 1.0)
    queue.put(job(4000, 4000))
    with pytest.raises(Overloaded) as caught:
        queue.put(job(10))
    assert caught.value.retry_after_s == 8.0
    queue.record_speed(1, 1.0)
    queue.record_speed(1, 100.0)
    with pytest.raises(Overloaded) as caught:
        queue.put(job(10))
    assert 8.0 < caught.value.retry_after_s <= 30.0


def test_the_last_vector_completes_a_request_in_its_own_order() -> None:
    waiting = job(1, 2, 3)
    waiting.receive(2, [2.0])
    waiting.receive(0, [0.0])
    assert not waiting.future.done()
    waiting.receive(1, [1.0])
    assert waiting.future.result() == [[0.0], [1.0], [2.0]]


def test_closing_fails_what_waits_and_ends_the_owner(queue: WorkQueue) -> None:
    waiting = job(10)
    queue.put(waiting)
    queue.close()
    with pytest.raises(BackendFailed):
        waiting.future.result()
    assert queue.take() is None
    with pytest.raises(BackendFailed):
        queue.put(job(10))


def test_an_empty_queue_waits_until_something_comes(queue: WorkQueue) -> None:
    found: list[list[str]] = []
    owner = threading.Thread(target=lambda: found.append(texts(queue.take())))
    owner.start()
    queue.put(question())
    owner.join()
    assert found == [["q0"]]
