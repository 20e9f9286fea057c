"""The Jinja environment of chat templates: no files, no attributes of objects, everything counted.

Built on Jinja's immutable sandbox. Loops and `~` are rewritten on the syntax tree, the one place
that sees all of them, so that they go through the budget.
"""

from __future__ import annotations

import functools
from datetime import datetime
from typing import TYPE_CHECKING, Any

from jinja2 import nodes
from jinja2.exceptions import SecurityError, TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.runtime import LoopContext, Macro, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

from engine.text.template_filters import join_text, replace_text, template_filters
from engine.text.template_limits import LimitReached, budget, checked_integer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from jinja2.parser import Parser
    from jinja2.runtime import Context

_MAX_RANGE = 100_000
_MAX_EXPONENT = 64
_MAX_TIME_FORMAT = 200
_METHODS: dict[type, frozenset[str]] = {
    str: frozenset(
        {"capitalize", "count", "endswith", "find", "index", "join", "lower", "lstrip"}
        | {"isalnum", "isalpha", "isascii", "isdigit", "islower", "isnumeric", "isspace", "isupper"}
        | {"partition", "removeprefix", "removesuffix", "replace", "rfind", "rpartition", "rsplit"}
        | {"rstrip", "split", "splitlines", "startswith", "strip", "title", "upper"}
    ),
    list: frozenset({"copy", "count", "index"}),
    tuple: frozenset({"count", "index"}),
    dict: frozenset({"copy", "get", "items", "keys", "values"}),
    LoopContext: frozenset({"changed", "cycle"}),
}


class TemplateRefusal(TemplateError):
    """The template called `raise_exception`: it cannot express these messages."""


class TemplateSandbox(ImmutableSandboxedEnvironment):
    """Renders only inside `metered(...)`. `now` is the clock of `strftime_now`."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self, now: Callable[[], datetime] = datetime.now) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            optimized=False,  # constant folding would run filters without a budget
            finalize=_weighed,
            extensions=[_GenerationTag, loopcontrols],
        )
        self.filters = template_filters() | {"_counted": _counted, "_joined": _joined}
        self.globals = {
            "range": _range,
            "dict": _make_dict,
            "namespace": _TemplateNamespace,
            "raise_exception": _raise_exception,
            "strftime_now": _clock(now),
        }
        self._functions = tuple(self.globals.values())

    # Every piece of a block, of a macro and of the whole output goes through here.
    @staticmethod
    def concat(pieces: Iterable[str]) -> str:
        return join_text("", pieces)

    def call(self, context: Context, called: Any, /, *args: Any, **kwargs: Any) -> Any:
        """A call in a template: of a macro, of our functions, or of a plain value's method."""
        budget().step()
        if isinstance(called, LoopContext):  # a recursive loop goes into its members
            args = tuple(map(_counted, args))
        elif not isinstance(called, Macro | Undefined) and not self._is_ours(called):
            called = _checked_method(called)
        made = super().call(context, called, *args, **kwargs)
        budget().charge_for(made)
        return made

    def _is_ours(self, called: Any) -> bool:
        return any(called is function for function in self._functions)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        _check_operands(operator, left, right)
        made = super().call_binop(context, operator, left, right)
        checked_integer(made)
        budget().charge_for(made)
        return made

    def wrap_str_format(self, value: Any) -> Any:
        """No `str.format`: its cost is in its argument, and templates do not use it."""
        if super().wrap_str_format(value) is not None:
            raise SecurityError("str.format is not available")

    def _generate(self, source: nodes.Template, *args: Any, **kwargs: Any) -> str:
        _Metering().visit(source)
        return super()._generate(source, *args, **kwargs)


class _Metering(NodeTransformer):
    """`for x in y` becomes `for x in y|_counted`, `a ~ b` becomes `[a, b]|_joined`."""

    def visit_For(self, loop: nodes.For) -> nodes.For:
        self.generic_visit(loop)
        loop.iter = _filtered(loop.iter, "_counted")
        return loop

    def visit_Concat(self, joined: nodes.Concat) -> nodes.Filter:
        self.generic_visit(joined)
        return _filtered(nodes.List(joined.nodes, lineno=joined.lineno), "_joined")


class _GenerationTag(Extension):
    """`{% generation %}` marks the assistant's part for training; here it changes nothing."""

    tags = {"generation"}  # noqa: RUF012 - Jinja's interface

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _TemplateNamespace(Namespace):
    """Names with an underscore would reach what Python keeps there."""

    def __init__(*args: Any, **kwargs: Any) -> None:
        self, args = args[0], args[1:]
        attributes = dict(*args, **kwargs)
        for name in attributes:
            _refuse_private(name)
        Namespace.__init__(self, attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _refuse_private(name)
        Namespace.__setitem__(self, name, value)


class _Counted:
    """An iterable whose every member is a step; it keeps its length for `loop.length`."""

    def __init__(self, iterable: Any) -> None:
        self._iterable = iterable

    def __iter__(self) -> Iterator[Any]:
        for member in self._iterable:
            budget().step()
            yield member

    def __len__(self) -> int:
        return len(self._iterable)


def _filtered(value: nodes.Node, name: str) -> nodes.Filter:
    return nodes.Filter(value, name, [], [], None, None, lineno=value.lineno)


def _counted(iterable: Any) -> _Counted:
    return _Counted(iterable)


def _joined(members: list[Any]) -> str:
    return join_text("", members)


def _weighed(value: Any) -> Any:
    """What an output expression gave: paid for before it becomes text."""
    if not isinstance(value, str):
        budget().weigh(value)
    return value


def _check_operands(operator: str, left: Any, right: Any) -> None:
    if operator == "%" and isinstance(left, str | bytes):
        raise SecurityError("the formatting operator is not available")
    if operator == "**" and not (isinstance(right, int | float) and abs(right) <= _MAX_EXPONENT):
        raise LimitReached("too large a number")
    if operator == "*":
        for times, repeated in ((left, right), (right, left)):
            if isinstance(times, int) and isinstance(repeated, str | list | tuple):
                budget().charge(max(0, times) * len(repeated))  # before it fills the memory


def _checked_method(called: Any) -> Callable[..., Any]:
    """The method of a plain value, in the form that pays before it makes anything.

    Raises SecurityError for whatever else can be called.
    """
    owner = getattr(called, "__self__", None)
    name = getattr(called, "__name__", "")
    kind = next((kind for kind in _METHODS if isinstance(owner, kind)), None)
    if kind is None or name not in _METHODS[kind]:
        raise SecurityError(f"'{name or type(called).__name__}' cannot be called")
    if isinstance(owner, str):
        if name == "replace":
            return functools.partial(replace_text, owner)
        if name == "join":
            return functools.partial(join_text, owner)
        budget().charge(len(owner))
    method: Callable[..., Any] = called
    return method


def _range(*bounds: int) -> range:
    numbers = range(*bounds)
    if len(numbers) > _MAX_RANGE:
        raise LimitReached(f"a range of more than {_MAX_RANGE} numbers")
    return numbers


def _make_dict(*args: Any, **kwargs: Any) -> dict[str, Any]:
    made = dict(*args, **kwargs)
    budget().charge(len(made))
    return made


def _raise_exception(message: str) -> None:
    raise TemplateRefusal(message)


def _clock(now: Callable[[], datetime]) -> Callable[[str], str]:
    def strftime_now(format: str) -> str:
        if len(format) > _MAX_TIME_FORMAT or any(c.isdigit() for c in format):
            raise LimitReached("a longer time format")
        return now().strftime(format)

    return strftime_now


def _refuse_private(name: object) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError("names that begin with an underscore are not available")
