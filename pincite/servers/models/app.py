"""The FastAPI application: TEI's `/embed`, `/info` and `/health`, our `/livez`, `/readyz`,
`/metrics`."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import ValidationError

from core.domain.search import EmbedderInfo
from core.errors import NotFound, PinciteError
from pincite import __version__
from pincite.servers.models.access import Access, AccessGate
from pincite.servers.models.errors import (
    BackendFailed,
    BadBody,
    ClientGone,
    EmptyRequest,
    Refused,
    refusal,
)
from pincite.servers.models.metrics import ModelsMetrics
from pincite.servers.models.owner import ModelOwner, TextEncoder
from pincite.servers.models.queueing import EmbedJob, Limits, Priority, WorkQueue
from pincite.servers.models.schema import EmbedRequest

PRIORITY_HEADER: Final = "X-Pincite-Priority"
FINGERPRINT_HEADER: Final = "X-Pincite-Model"
MAX_TEXTS: Final = 32  # TEI's default; clients read it from /info
MAX_BODY_BYTES: Final = 2_000_000

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Service:
    """What the routes work with; made by `pincite.servers.models.server`."""

    encoder: TextEncoder
    owner: ModelOwner
    queue: WorkQueue
    limits: Limits
    metrics: ModelsMetrics

    @property
    def info(self) -> EmbedderInfo:
        return self.encoder.info()


def create_app(service: Service, access: Access) -> FastAPI:
    """The model server's application around a loaded model."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(AccessGate, access=access)

    async def embed(request: Request) -> Response:
        started = time.perf_counter()
        level = "unknown"
        try:
            priority = _priority(request)
            level = priority.value
            vectors = await _embed(service, request, priority)
            response: Response = JSONResponse(vectors)
        except PinciteError as error:
            response = refusal(error)
        except Exception:
            log.exception("models.request_failed")
            response = refusal(BackendFailed("the model server failed; its log says why"))
        service.metrics.record_request(level, response.status_code, time.perf_counter() - started)
        response.headers[FINGERPRINT_HEADER] = service.info.fingerprint
        return response

    async def info() -> Response:
        return JSONResponse(_info(service))

    async def health() -> Response:
        if service.owner.is_alive:
            return PlainTextResponse("ok")
        return refusal(BackendFailed("the model's thread ended"))

    async def livez() -> Response:
        return PlainTextResponse("ok")

    async def exposition() -> Response:
        content = service.metrics.exposition()
        return Response(content, media_type="text/plain; version=0.0.4; charset=utf-8")

    async def absent(request: Request) -> Response:
        path = request.url.path
        return refusal(NotFound(f"this server has no {path}: it serves an embedder"))

    app.add_api_route("/embed", embed, methods=["POST"])
    app.add_api_route("/info", info, methods=["GET"])
    app.add_api_route("/health", health, methods=["GET"])
    app.add_api_route("/readyz", health, methods=["GET"])
    app.add_api_route("/livez", livez, methods=["GET"])
    app.add_api_route("/metrics", exposition, methods=["GET"])
    app.add_api_route("/{path:path}", absent, methods=["GET", "POST", "PUT", "PATCH", "DELETE"])
    return app


async def _embed(service: Service, request: Request, priority: Priority) -> list[list[float]]:
    body = _parse(await _read(request))
    texts = body.texts
    if not texts:
        raise EmptyRequest("`inputs` must not be empty")
    if len(texts) > MAX_TEXTS:
        raise Refused(f"batch size {len(texts)} > maximum allowed batch size {MAX_TEXTS}")
    if body.prompt_name is not None and body.prompt_name not in service.encoder.prompts:
        raise Refused(f"this model has no prompt named {body.prompt_name!r}")
    loop = asyncio.get_running_loop()
    num_tokens = await loop.run_in_executor(None, partial(service.encoder.count_tokens, texts))
    max_tokens = service.info.max_tokens
    if max(num_tokens) > max_tokens:
        raise Refused(f"`inputs` must have at most {max_tokens} tokens. Given: {max(num_tokens)}")
    job = EmbedJob(texts, num_tokens, priority, body.prompt_name)
    service.queue.put(job)
    return await _result(job, request)


async def _read(request: Request) -> bytes:
    """The body. Raises Refused beyond the limit, whatever the header says."""
    content = bytearray()
    async for piece in request.stream():
        content += piece
        if len(content) > MAX_BODY_BYTES:
            raise Refused(f"a body has at most {MAX_BODY_BYTES} bytes")
    return bytes(content)


def _parse(content: bytes) -> EmbedRequest:
    try:
        return EmbedRequest.model_validate_json(content)
    except ValidationError as error:
        # Only the places and rules: the values are document text.
        reasons = "; ".join(
            f"{'.'.join(str(part) for part in detail['loc']) or 'body'}: {detail['msg']}"
            for detail in error.errors(include_input=False, include_url=False)
        )
        raise BadBody(f"not a body of /embed: {reasons}") from error


def _priority(request: Request) -> Priority:
    """The level a request asks for; passages, when it does not say (any TEI client)."""
    told = request.headers.get(PRIORITY_HEADER, Priority.PASSAGE.value)
    try:
        return Priority(told.lower())
    except ValueError as error:
        raise Refused(f"{PRIORITY_HEADER} is question or passage") from error


async def _result(job: EmbedJob, request: Request) -> list[list[float]]:
    """The vectors, or ClientGone as soon as the client hung up; its texts are then dropped."""
    done = asyncio.wrap_future(job.future)
    gone = asyncio.ensure_future(_disconnected(request))
    waited_for: set[asyncio.Future[Any]] = {done, gone}
    try:
        await asyncio.wait(waited_for, return_when=asyncio.FIRST_COMPLETED)
        if done.done():
            return done.result()
        raise ClientGone("the client hung up")
    finally:
        job.abandon()
        gone.cancel()
        done.cancel()


async def _disconnected(request: Request) -> None:
    """Return when the client has hung up (the body was read, so nothing else can come)."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _info(service: Service) -> dict[str, Any]:
    """TEI's `/info`, and what only we tell under `pincite`."""
    info = service.info
    return {
        "model_id": info.model_id,
        "model_sha": info.fingerprint,
        "model_dtype": service.encoder.precision,
        "model_type": {"embedding": {"pooling": "sentence-transformers"}},
        "max_concurrent_requests": service.limits.max_waiting,
        "max_input_length": info.max_tokens,
        "max_batch_tokens": service.limits.max_batch_tokens,
        "max_client_batch_size": MAX_TEXTS,
        "auto_truncate": False,
        "tokenization_workers": 1,
        "version": __version__,
        "pincite": {
            "fingerprint": info.fingerprint,
            "dimension": info.dimension,
            "prompts": sorted(service.encoder.prompts),
            "device": service.encoder.device,
        },
    }
