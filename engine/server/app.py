"""The FastAPI application: OpenAI's chat, completions and models, vLLM's `/tokenize`, and
`/livez`, `/readyz`, `/metrics`."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse

from engine.errors import EngineError
from engine.metrics import CONTENT_TYPE
from engine.server.bodies import (
    ChatBody,
    CompletionBody,
    GenerationBody,
    TokenizeBody,
    cache_hints,
    parse_object,
    validated,
)
from engine.server.errors import ApiError, as_api_error, invalid
from engine.server.messages import chat_messages, completion_prompts
from engine.server.middleware import RequestGate
from engine.server.parameters import (
    refuse_unsupported_chat,
    refuse_unsupported_completion,
    refuse_unsupported_tokenize,
)
from engine.server.responses import Asked, GeneratedResponse
from engine.server.running import EngineCall
from engine.server.shapes import ChatShape, CompletionShape, Shape

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from engine.server.access import Access, Caller
    from engine.server.limits import RequestLimits
    from engine.server.service import Service

CAPABILITIES: Final = ("cache_salt", "tokenize")


class Routes:
    """One method a route; made by `create_app`."""

    def __init__(self, service: Service, access: Access, limits: RequestLimits) -> None:
        self._service = service
        self._access = access
        self._limits = limits

    async def chat(self, request: Request) -> Response:
        """`POST /v1/chat/completions`."""
        self._service.require()
        given = parse_object(await self._read(request))
        refuse_unsupported_chat(given, ChatBody.model_fields)
        body = validated(ChatBody, given)
        self._service.check_model(body.model)
        messages = chat_messages(body.messages)
        ids = await self._service.encode_chat(messages, add_generation_prompt=True)
        return self._generate(request, body, [ids], ChatShape)

    async def completions(self, request: Request) -> Response:
        """`POST /v1/completions`."""
        self._service.require()
        given = parse_object(await self._read(request))
        refuse_unsupported_completion(given, CompletionBody.model_fields)
        body = validated(CompletionBody, given)
        self._service.check_model(body.model)
        prompts = [
            await self._service.encode_text(prompt, add_special_tokens=True)
            if isinstance(prompt, str)
            else prompt
            for prompt in completion_prompts(body.prompt)
        ]
        return self._generate(request, body, prompts, CompletionShape)

    async def tokenize(self, request: Request) -> Response:
        """`POST /tokenize`."""
        loaded = self._service.require()
        given = parse_object(await self._read(request))
        refuse_unsupported_tokenize(given, TokenizeBody.model_fields)
        body = validated(TokenizeBody, given)
        if body.model is not None:
            self._service.check_model(body.model)
        if (body.prompt is None) == (body.messages is None):
            raise invalid("give either a prompt or messages", "prompt")
        if body.messages is not None:
            if body.add_special_tokens:
                raise invalid("a chat template adds them itself", "add_special_tokens")
            tokens = await self._service.encode_chat(
                chat_messages(body.messages),
                add_generation_prompt=body.add_generation_prompt is not False,
            )
        else:
            tokens = await self._service.encode_text(
                body.prompt or "", add_special_tokens=body.add_special_tokens is not False
            )
        facts = {"count": len(tokens), "max_model_len": loaded.max_model_len, "tokens": tokens}
        return JSONResponse({**facts, "token_strs": None})

    async def models(self) -> Response:
        """`GET /v1/models`: the one there is."""
        return JSONResponse({"object": "list", "data": [self._model()]})

    async def model(self, name: str) -> Response:
        """`GET /v1/models/{name}`."""
        self._service.check_model(name)
        return JSONResponse(self._model())

    async def livez(self) -> Response:
        """Whether this process answers at all."""
        return PlainTextResponse("ok")

    async def readyz(self) -> Response:
        """Whether it would take a request: 503 while it loads, fails or stops."""
        self._service.require()
        return PlainTextResponse("ok")

    async def exposition(self) -> Response:
        """`GET /metrics`."""
        return Response(self._service.metrics.exposition(), headers={"Content-Type": CONTENT_TYPE})

    def _model(self) -> dict[str, Any]:
        loaded = self._service.require()
        return {
            "id": self._service.model_name,
            "object": "model",
            "created": self._service.created_s,
            "owned_by": "pincite",
            "max_model_len": loaded.max_model_len,
            "pincite": {
                "fingerprint": loaded.fingerprint,
                "capabilities": list(CAPABILITIES),
            },
        }

    def _generate(
        self,
        request: Request,
        body: GenerationBody,
        prompts: list[list[int]],
        shape: type[Shape],
    ) -> Response:
        body.check_stream_options()
        sampling = body.sampling()
        salt, num_shared = self._cache_rules(request.state.caller, body)
        asked = Asked(
            calls=[EngineCall(ids, sampling, salt, min(num_shared, len(ids))) for ids in prompts],
            shape=shape(self._service.model_name, self._service.require().fingerprint),
            is_streamed=bool(body.stream),
            has_usage=body.wants_usage,
            arrival_s=request.state.arrival_s,
        )
        return GeneratedResponse(self._service, asked, self._limits.heartbeat_s)

    def _cache_rules(self, caller: Caller, body: GenerationBody) -> tuple[bytes, int]:
        """Salt and shared tokens: as an internal caller says; from anybody else it is ignored."""
        if not caller.is_internal:
            return caller.salt, 0
        hints = cache_hints(body.pincite)
        salt = self._access.salt_of(hints.cache_salt) if hints.cache_salt else caller.salt
        return salt, hints.shared_prefix_tokens or 0

    async def _read(self, request: Request) -> bytes:
        """The body. Raises ApiError 413 beyond the limit, whatever the header says, and 408 for
        one that does not come."""
        content = bytearray()
        try:
            async with asyncio.timeout(self._limits.body_s):
                async for piece in request.stream():
                    content += piece
                    if len(content) > self._limits.max_body_bytes:
                        raise ApiError(
                            413,
                            f"a body has at most {self._limits.max_body_bytes} bytes",
                            code="request_too_large",
                        )
        except TimeoutError:
            raise ApiError(408, "the body did not come", code="request_timeout") from None
        return bytes(content)


def create_app(service: Service, access: Access, limits: RequestLimits) -> FastAPI:
    """The engine's application; it begins to load the model when it is started."""

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        service.start()
        watching = asyncio.create_task(service.watch())
        yield
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
        await service.close()

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    app.add_middleware(RequestGate, access=access)
    app.add_exception_handler(EngineError, _refuse)
    app.add_exception_handler(404, _absent)
    app.add_exception_handler(405, _absent)
    routes = Routes(service, access, limits)
    app.add_api_route("/v1/chat/completions", routes.chat, methods=["POST"])
    app.add_api_route("/v1/completions", routes.completions, methods=["POST"])
    app.add_api_route("/v1/models", routes.models, methods=["GET"])
    app.add_api_route("/v1/models/{name:path}", routes.model, methods=["GET"])
    app.add_api_route("/tokenize", routes.tokenize, methods=["POST"])
    app.add_api_route("/livez", routes.livez, methods=["GET"])
    app.add_api_route("/readyz", routes.readyz, methods=["GET"])
    app.add_api_route("/metrics", routes.exposition, methods=["GET"])
    return app


async def _refuse(_request: Request, error: Exception) -> Response:
    return as_api_error(error).response()


async def _absent(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    message = f"there is no {request.method} {request.url.path[:200]} here"
    return ApiError(status, message, code="not_found").response()
