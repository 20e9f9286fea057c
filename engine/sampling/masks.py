"""Which tokens may come next at all: the request's own mask, and no end before `min_tokens`."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.request import Request

log = logging.getLogger(__name__)


def has_mask(request: Request) -> bool:
    return request.sampling.token_mask is not None or _is_too_early_to_end(request)


def apply_mask(row: torch.Tensor, request: Request) -> None:
    """`row`: [vocab] float32; what is not allowed becomes -inf, in place. A row of nothing else
    afterwards means that no token is allowed.

    The mask is stronger than `min_tokens`: when it allows end tokens only (a grammar that is
    complete), the output ends.
    """
    allowed = _allowed(request)
    if allowed is not None:
        inside = [token_id for token_id in allowed if 0 <= token_id < row.shape[0]]
        if _is_too_early_to_end(request):
            inside = [one for one in inside if one not in request.end_token_ids] or inside
        ids = torch.tensor(inside, dtype=torch.int64, device=row.device)
        logits = row[ids]
        row.fill_(-torch.inf)
        row[ids] = logits
    elif _is_too_early_to_end(request):
        ends = [one for one in request.end_token_ids if 0 <= one < row.shape[0]]
        row[torch.tensor(ends, dtype=torch.int64, device=row.device)] = -torch.inf


def _allowed(request: Request) -> Sequence[int] | None:
    mask = request.sampling.token_mask
    if mask is None:
        return None
    try:
        return mask(tuple(request.output_token_ids))
    except Exception:  # the caller's code may end its own request only
        log.exception(
            "the token mask of request %s raised: no token is allowed", request.request_id
        )
        return ()


def _is_too_early_to_end(request: Request) -> bool:
    return len(request.output_token_ids) < request.sampling.min_tokens
