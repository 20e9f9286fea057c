"""Bodies of the routes, as OpenAI and vLLM define them. JSON in, checked values out.

Strict: a number in quotes is not a number. `null` is the same as not given, as in OpenAI's API.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json

from engine.sampling_params import SamplingParams
from engine.server.errors import ApiError, invalid

_DEFAULT_COMPLETION_TOKENS = 16  # OpenAI's
_INT64 = 2**63

Count = Annotated[int, Field(ge=0, lt=_INT64)]
Body = TypeVar("Body", bound=BaseModel)


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, allow_inf_nan=False)


class StreamOptions(_Strict):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    include_usage: bool | None = None
    include_obfuscation: Annotated[bool | None, Field(le=False)] = None


class CacheHints(_Strict):
    """`pincite`: what a caller with the internal key may say of its blocks."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    cache_salt: Annotated[str, Field(max_length=512)] | None = None
    shared_prefix_tokens: Count | None = None


class GenerationBody(_Strict):
    """What chat and plain completions share. `pincite` is looked at for internal callers only."""

    model: str
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    pincite: Any = None

    max_tokens: Annotated[int, Field(lt=_INT64)] | None = None
    temperature: float | None = None
    top_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: Annotated[int, Field(ge=-_INT64, lt=_INT64)] | None = None
    stop: str | list[str] | None = None
    # beyond OpenAI's, with vLLM's names
    top_k: Annotated[int, Field(lt=_INT64)] | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    ignore_eos: bool | None = None
    min_tokens: Count | None = None
    stop_token_ids: list[Count] | None = None
    include_stop_str_in_output: bool | None = None

    @property
    def wants_usage(self) -> bool:
        """Whether a stream ends with the usage."""
        return bool(self.stream_options and self.stream_options.include_usage)

    def sampling(self) -> SamplingParams:
        """Raises InvalidRequest naming the parameter."""
        given: dict[str, Any] = {
            "temperature": self.temperature,
            "top_p": self.top_p,
            "presence_penalty": self.presence_penalty,
            "frequency_penalty": self.frequency_penalty,
            "top_k": self.top_k,
            "min_p": self.min_p,
            "repetition_penalty": self.repetition_penalty,
            "ignore_eos": self.ignore_eos,
            "min_tokens": self.min_tokens,
            "include_stop": self.include_stop_str_in_output,
        }
        stop = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return SamplingParams(
            max_tokens=self.output_tokens(),
            seed=self.seed,
            stop=tuple(stop),
            stop_token_ids=tuple(self.stop_token_ids or ()),
            **{name: value for name, value in given.items() if value is not None},
        )

    def output_tokens(self) -> int | None:
        """The limit of the output; None: as the context allows."""
        return self.max_tokens

    def check_stream_options(self) -> None:
        """Raises ApiError 400, as OpenAI does, for options of a stream that is none."""
        if self.stream_options is not None and not self.stream:
            raise invalid("stream_options needs stream", "stream_options")


class ChatBody(GenerationBody):
    """`POST /v1/chat/completions`."""

    messages: list[Any]
    max_completion_tokens: Annotated[int, Field(lt=_INT64)] | None = None

    def output_tokens(self) -> int | None:
        """`max_completion_tokens`, or its older name; both may be given when they agree."""
        newer, older = self.max_completion_tokens, self.max_tokens
        if newer is not None and older is not None and newer != older:
            raise invalid("max_tokens and max_completion_tokens differ", "max_completion_tokens")
        return newer if newer is not None else older


class CompletionBody(GenerationBody):
    """`POST /v1/completions`."""

    prompt: Any

    def output_tokens(self) -> int | None:
        """OpenAI's default is short."""
        return _DEFAULT_COMPLETION_TOKENS if self.max_tokens is None else self.max_tokens


class TokenizeBody(_Strict):
    """`POST /tokenize`: either a prompt or messages."""

    model: str | None = None
    prompt: str | None = None
    messages: list[Any] | None = None
    add_special_tokens: bool | None = None
    add_generation_prompt: bool | None = None


def parse_object(content: bytes) -> dict[str, Any]:
    """The JSON object of a body. Raises ApiError 400."""
    try:
        parsed = from_json(content)  # unlike json, it refuses half a surrogate pair
    except ValueError:
        raise invalid("the body is not JSON", None, code="invalid_json") from None
    if not isinstance(parsed, dict):
        raise invalid("the body is not a JSON object", None, code="invalid_json")
    return parsed


def validated(schema: type[Body], body: dict[str, Any]) -> Body:
    """The body as its schema has it; names were checked before. Raises ApiError 400 that tells
    place and rule, not the value, which is the person's text."""
    try:
        return schema.model_validate(
            {name: body[name] for name in schema.model_fields if name in body}
        )
    except ValidationError as error:
        raise _first_problem(error, None) from None


def cache_hints(value: Any) -> CacheHints:
    """The `pincite` object of an internal caller. Raises ApiError 400."""
    try:
        return CacheHints.model_validate({} if value is None else value)
    except ValidationError as error:
        raise _first_problem(error, "pincite") from None


def _first_problem(error: ValidationError, within: str | None) -> ApiError:
    detail = error.errors(include_input=False, include_url=False, include_context=False)[0]
    place = [part for part in detail["loc"] if not _is_type_name(part)]
    path = ".".join(str(part) for part in ([within] if within else []) + place)
    if detail["type"] == "missing":
        return invalid(f"you must provide a '{path}' parameter", path, code="missing_parameter")
    return invalid(f"{path or 'the body'}: {detail['msg']}", path or None)


def _is_type_name(part: int | str) -> bool:
    """Whether pydantic named a member of a union there."""
    return isinstance(part, str) and (part in ("str", "int") or "[" in part)
