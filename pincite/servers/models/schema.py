"""Bodies of the TEI endpoints. What we do not honour is refused, never ignored."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class EmbedRequest(BaseModel):
    """`POST /embed`. `normalize` and `truncate` exist in TEI; here vectors always have unit length
    and nothing is ever truncated."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    inputs: str | list[str]
    normalize: Literal[True] = True
    truncate: Literal[False] | None = None
    truncation_direction: Literal["Left", "Right", "left", "right"] = "Right"
    prompt_name: Annotated[str, Field(min_length=1, max_length=64)] | None = None

    @property
    def texts(self) -> list[str]:
        return [self.inputs] if isinstance(self.inputs, str) else self.inputs
