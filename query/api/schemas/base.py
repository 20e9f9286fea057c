"""What every schema shares."""

from __future__ import annotations

from typing import Annotated, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

T = TypeVar("T")

DocumentId = Annotated[str, StringConstraints(pattern=r"^doc_[0-9a-f]{32}$")]
Rect = tuple[float, float, float, float]


class Sent(BaseModel):
    """Something we send. Clients ignore fields they do not know: new ones may come."""

    model_config = ConfigDict(frozen=True)


class Received(BaseModel):
    """Something we are sent. An unknown field is refused: a typo would otherwise do nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Listing(Sent, Generic[T]):
    """A page of a list; `next_cursor` is null on the last one."""

    data: list[T]
    next_cursor: str | None = None


class Problem(Sent):
    """RFC 9457 problem details: the body of every error."""

    type: str = Field(examples=["urn:pincite:error:not_found"])
    title: str
    status: int
    code: str = Field(description="stable; for programs")
    detail: str = Field(description="a sentence; for people")
    request_id: str
    hint: str | None = None


class OpenAiError(Sent):
    """What is in the `error` of a response in OpenAI's shape."""

    message: str
    type: str
    param: str | None
    code: str
