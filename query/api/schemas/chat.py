"""Chat completions in OpenAI's shape, as far as an answer from documents has a use for them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from query.api.schemas.answers import Narrowing

ModelName = Annotated[str, StringConstraints(min_length=1, max_length=1_000)]


class _Lenient(BaseModel):
    """Clients of this interface send what their library sends; unknown fields do nothing."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class ContentPart(_Lenient):
    """Of a message. Only text has a meaning here; anything else is refused."""

    type: str
    text: str = ""


class Message(_Lenient):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[ContentPart] | None = None


class StreamOptions(_Lenient):
    include_usage: bool = False


class ResponseFormat(_Lenient):
    type: str


class PinciteOptions(Narrowing):
    """Our own additions: `extra_body={"pincite": {...}}` with the official client."""

    mode: Literal["auto", "extractive", "generative"] | None = None
    include_answer: bool = Field(False, description="the whole answer object on the message")


class ChatRequest(_Lenient):
    """`model`: `rag` for all that the key may see, or `rag/<collection>`; any other name goes to
    the configured language model as it is. Sampling parameters have no meaning for `rag` models,
    which answer the same every time; what would change the shape of the response is refused."""

    model: ModelName
    messages: list[Message] = Field(min_length=1, max_length=1_000)
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    n: int | None = None
    stop: str | list[str] | None = None
    logprobs: bool | None = None
    tools: list[Any] | None = None
    functions: list[Any] | None = None
    response_format: ResponseFormat | None = None
    modalities: list[str] | None = None
    pincite: PinciteOptions = PinciteOptions()


class Model(BaseModel):
    """One entry of the list of models."""

    model_config = ConfigDict(frozen=True, extra="allow")

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str


class ModelList(BaseModel):
    object: Literal["list"] = "list"
    data: list[Model]
