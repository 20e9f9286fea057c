"""The order of admission, and when a refused caller should come back."""

import pytest

from engine.request import Request, RequestStatus
from engine.sampling_params import SamplingParams
from engine.scheduling.waiting_queue import AdmissionRate, WaitingQueue


def request(name: str, *, arrival_s: float = 0.0, priority: int = 0, ran: bool = False) -> Request:
    status = RequestStatus.PREEMPTED if ran else RequestStatus.WAITING
    return Request(
        name, [1], SamplingParams(), arrival_s=arrival_s, priority=priority, status=status
    )


def queue_of(*requests: Request) -> WaitingQueue:
    queue = WaitingQueue()
    for one in requests:
        queue.add(one)
    return queue


def names(queue: WaitingQueue) -> list[str]:
    return [one.request_id for one in queue]


def test_priority_then_arrival() -> None:
    queue = queue_of(
        request("late", arrival_s=3.0),
        request("early", arrival_s=1.0),
        request("background", arrival_s=0.0, priority=5),
        request("urgent", arrival_s=9.0, priority=-1),
    )
    assert names(queue) == ["urgent", "early", "late", "background"]


def test_preempted_requests_come_back_to_the_front_of_their_priority() -> None:
    queue = queue_of(
        request("early", arrival_s=1.0),
        request("second victim", arrival_s=8.0, ran=True),
        request("first victim", arrival_s=7.0, ran=True),
        request("urgent", arrival_s=9.0, priority=-1),
    )
    assert names(queue) == ["urgent", "first victim", "second victim", "early"]


def test_equal_arrivals_keep_the_order_in_which_they_were_added() -> None:
    assert names(queue_of(*(request(name) for name in "dbac"))) == list("dbac")


def test_requests_leave_while_the_queue_is_walked() -> None:
    queue = queue_of(*(request(name) for name in "abc"))
    seen = []
    for one in queue:
        seen.append(one.request_id)
        queue.remove(one)
    assert seen == ["a", "b", "c"]
    assert len(queue) == 0


def test_removing_a_stranger_is_refused() -> None:
    queue = queue_of(request("a"))
    with pytest.raises(ValueError, match="does not wait"):
        queue.remove(request("a"))


def test_overtakes_are_forgotten_when_the_request_leaves() -> None:
    one = request("a")
    queue = queue_of(one)
    queue.overtake(one)
    queue.overtake(one)
    assert queue.num_overtaken(one) == 2
    queue.remove(one)
    assert queue.num_overtaken(one) == 0


def test_callers_refused_one_after_another_are_sent_to_one_place_each() -> None:
    rate = AdmissionRate()
    assert rate.refused(0.0) == 1.0, "nothing measured yet"
    rate.admitted(0.0)
    for second in range(0, 40, 4):
        rate.admitted(float(second))
    waits = [rate.refused(40.0) for _ in range(30)]
    assert waits[0] == pytest.approx(40.0 / 11)
    assert waits[1] == pytest.approx(2 * waits[0])
    assert waits[-1] == 60.0, "never sent away for longer than a minute"
    rate.admitted(40.0)
    assert rate.refused(40.0) <= 60.0


def test_the_wait_grows_while_nothing_is_admitted() -> None:
    rate = AdmissionRate()
    for second in range(4):
        rate.admitted(float(second))
    soon = rate.refused(4.0)
    rate.admitted(4.0)
    assert rate.refused(104.0) > 10 * soon
