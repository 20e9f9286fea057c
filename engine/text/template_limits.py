"""What one rendering of a chat template may cost, and who counts it.

A template comes with a model and is a program: it can loop, double a string forty times or ask for
ten billion spaces. Loops and calls are counted, what is made is weighed before it is made where its
size can be known, and a deadline ends the rest. This is no proof against a determined author, who
would be the one who chose the weights, too; it keeps a broken or hostile template from hanging the
server or filling its memory by the usual means.
"""

from __future__ import annotations

import time
from collections.abc import ItemsView, KeysView, ValuesView
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jinja2 import Undefined

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_INTEGER = 2**63
_ENTRY_CHARS = 256  # what an entry of a container costs: its memory, and the time to look at it
_SCALARS = (str, bool, int, float, type(None), Undefined)
_CONTAINERS = (list, tuple, KeysView, ValuesView, ItemsView)


class LimitReached(Exception):
    """The template needs more than it may have. The message says more of what."""


@dataclass(frozen=True, slots=True)
class TemplateLimits:
    """
    max_source_chars: of the template itself.
    max_steps: loop rounds and calls of one rendering, all together.
    max_chars: characters that one rendering may make, all together; a list entry counts as 256.
    max_output_chars: of the rendered text.
    max_seconds: of one rendering.
    """

    max_source_chars: int = 256_000
    max_steps: int = 100_000
    max_chars: int = 64_000_000
    max_output_chars: int = 8_000_000
    max_seconds: float = 10.0


class RenderBudget:
    """What is left to one rendering."""

    def __init__(self, limits: TemplateLimits) -> None:
        self._steps = limits.max_steps
        self._chars = limits.max_chars
        self._deadline_s = time.monotonic() + limits.max_seconds

    def step(self) -> None:
        """Pay for a loop round or a call."""
        self._steps -= 1
        if self._steps < 0:
            raise LimitReached("too many loop rounds and calls")
        if time.monotonic() > self._deadline_s:
            raise LimitReached("too much time")

    def charge(self, num_chars: int) -> None:
        """Pay for text that is about to be made."""
        self._chars -= num_chars
        if self._chars < 0:
            raise LimitReached("too much text")

    def charge_for(self, made: object) -> None:
        """Pay for a text or a list that was made."""
        if isinstance(made, str):
            self.charge(len(made))
        elif isinstance(made, list | tuple):
            self.charge(len(made) * _ENTRY_CHARS)

    def weigh(self, value: object) -> None:
        """Pay for what the text form of a value will take: containers with all they contain, as
        often as they contain it.

        Raises LimitReached also for anything but plain values, whose text could be any size.
        """
        self.charge(len(value) if isinstance(value, str) else _ENTRY_CHARS)
        if isinstance(value, dict):
            for key, member in value.items():
                self.weigh(key)
                self.weigh(member)
        elif isinstance(value, _CONTAINERS):
            for member in value:
                self.weigh(member)
        elif not isinstance(value, _SCALARS):
            raise LimitReached(f"the text of a {type(value).__name__}")


_BUDGET: ContextVar[RenderBudget] = ContextVar("template_budget")


def budget() -> RenderBudget:
    """The budget of the rendering that is going on."""
    return _BUDGET.get()


@contextmanager
def metered(limits: TemplateLimits) -> Iterator[None]:
    """Everything that is rendered inside shares one budget."""
    token = _BUDGET.set(RenderBudget(limits))
    try:
        yield
    finally:
        _BUDGET.reset(token)


def checked_integer(value: object) -> None:
    """Raises LimitReached beyond 64 bits: squared often enough, a number fills the memory."""
    if isinstance(value, int) and abs(value) > _MAX_INTEGER:
        raise LimitReached("too large a number")
