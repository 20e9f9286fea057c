"""The filters that chat templates may use: Jinja's, less those that make text out of nothing."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any

from jinja2 import filters, pass_environment

from engine.text.template_limits import LimitReached, budget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from jinja2 import Environment

# Not among them: attr, batch, center, format, pprint, random, slice, truncate, urlize, wordwrap,
# xmlattr and the like, which templates do not use, and whose cost is in their arguments.
_FROM_JINJA = (
    "abs",
    "capitalize",
    "count",
    "d",
    "default",
    "dictsort",
    "e",
    "escape",
    "first",
    "float",
    "groupby",
    "int",
    "items",
    "last",
    "length",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "reject",
    "rejectattr",
    "reverse",
    "safe",
    "select",
    "selectattr",
    "sort",
    "string",
    "title",
    "trim",
    "unique",
    "upper",
    "wordcount",
)
# These take the text form of whatever they are given.
_STRINGIFY = frozenset({"capitalize", "e", "escape", "lower", "string", "title", "trim", "upper"})
_MAX_INDENT = 64
_MAX_PRECISION = 15


def template_filters() -> dict[str, Callable[..., Any]]:
    """Filters by name; each pays for what it makes."""
    found = {name: _paying(name, filters.FILTERS[name]) for name in _FROM_JINJA}
    own: dict[str, Callable[..., Any]] = {
        "indent": _indent,
        "join": _join,
        "replace": _replace,
        "round": _round,
        "sum": _sum,
        "tojson": _tojson,
    }
    return found | own


def replace_text(text: str, old: str, new: str, count: int = -1) -> str:
    """`str.replace`, paid for before it is done."""
    found = text.count(old)
    times = found if count < 0 else min(found, count)
    budget().charge(len(text) + times * len(new))
    return text.replace(old, new, times)


def join_text(separator: str, members: Iterable[object]) -> str:
    """`str.join`, paid for before it is done; members become text first."""
    texts = []
    for member in members:
        if not isinstance(member, str):
            budget().weigh(member)
        texts.append(str(member))
        budget().charge(len(texts[-1]) + len(separator))
    return separator.join(texts)


def _paying(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    # Jinja passes an environment or context first to filters that are marked so: `wraps` keeps the
    # mark.
    @functools.wraps(original)
    def paying(*args: Any, **kwargs: Any) -> Any:
        budget().step()
        if name in _STRINGIFY:
            for value in args:
                if isinstance(value, list | tuple | dict):
                    budget().weigh(value)
        made = original(*args, **kwargs)
        budget().charge_for(made)
        return made

    return paying


@pass_environment
def _join(environment: Environment, value: Any, d: str = "", attribute: Any = None) -> str:
    members = value
    if attribute is not None:
        members = (environment.getitem(member, attribute) for member in value)
    return join_text(str(d), members)


def _replace(text: Any, old: str, new: str, count: int | None = None) -> str:
    budget().weigh(text)
    return replace_text(str(text), str(old), str(new), -1 if count is None else count)


def _indent(text: Any, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    budget().weigh(text)
    filling = width if isinstance(width, str) else " " * min(int(width), _MAX_INDENT)
    budget().charge(len(filling) * (str(text).count("\n") + 1))
    return filters.do_indent(str(text), filling, first, blank)


def _round(value: float, precision: int = 0, method: Any = "common") -> float:
    if abs(precision) > _MAX_PRECISION:
        raise LimitReached("too many digits")
    return filters.do_round(value, precision, method)


@pass_environment
def _sum(environment: Environment, values: Any, attribute: Any = None, start: Any = 0) -> Any:
    if not isinstance(start, int | float):
        raise LimitReached("sums are of numbers only")
    return filters.sync_do_sum(environment, values, attribute, start)


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """As in `transformers`: plain JSON, not escaped for HTML."""
    budget().weigh(value)
    width = None if indent is None else min(indent, _MAX_INDENT)
    text = json.dumps(
        value, ensure_ascii=ensure_ascii, indent=width, separators=separators, sort_keys=sort_keys
    )
    budget().charge(len(text))
    return text
