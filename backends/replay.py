"""A chat completions server that plays recorded raw replies: `model` says whose, no weights are needed."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from itertools import islice

import anyio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from streamsieve.backends.chat_reply import TOKEN_CHARACTERS, ChatReply
from streamsieve.backends.chat_request import ChatRequest, read_chat_request
from streamsieve.backends.openai_error import ApiError, bad_request, error_handlers
from streamsieve.backends.recording import Recording, recordings
from streamsieve.backends.reply_writer import DONE, sse
from streamsieve.wire.json_text import JsonObject


class DroppedOnRequest(ConnectionAbortedError):
    """`replay.error: "drop"`: leaves the application, so that the server cuts the connection."""


def replay(*, chunk: int = 4, delay: float = 0.0, library: Mapping[str, Recording] | None = None) -> Starlette:
    """The application: `/v1/models`, `/v1/chat/completions` and `/health`.

    `chunk` (code points) and `delay` (seconds before each delta) hold where a request does not say its own.
    """
    player = _Player(recordings() if library is None else library, chunk, delay)
    return Starlette(
        routes=[
            Route("/health", _health),
            Route("/v1/models", player.models),
            Route("/v1/models/{model:path}", player.model),
            Route("/v1/chat/completions", player.complete, methods=["POST"]),
        ],
        exception_handlers=error_handlers(),
    )


class _Player:
    def __init__(self, library: Mapping[str, Recording], chunk: int, delay: float) -> None:
        self._models = dict(_models(library.values()))
        self._chunk = chunk
        self._delay = delay
        self._created = int(time.time())

    async def models(self, request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [self._card(name) for name in self._models]})

    async def model(self, request: Request) -> Response:
        name: str = request.path_params["model"]
        self._find(name)
        return JSONResponse(self._card(name))

    async def complete(self, request: Request) -> Response:
        chat = read_chat_request(await request.body())
        reply = self._reply(chat)
        if isinstance(chat.replay.error, int):
            raise _requested_error(chat.replay.error)
        if not chat.stream:
            return JSONResponse(reply.whole())
        return StreamingResponse(self._stream(reply, chat), media_type="text/event-stream")

    async def _stream(self, reply: ChatReply, chat: ChatRequest) -> AsyncIterator[bytes]:
        options = chat.replay
        delay = self._delay if options.delay is None else options.delay
        deltas = reply.deltas(options.chunk or self._chunk)
        for chunk in reply.opening():
            yield sse(chunk)
        for chunk in deltas if options.error is None else islice(deltas, options.error_after):
            # Also without a delay: a stream must give way to the server's other requests.
            await anyio.sleep(delay)
            yield sse(chunk)
        match options.error:
            case "drop":
                raise DroppedOnRequest("replay.error: drop")
            case "event":
                yield sse(_requested_error(500).body())
            case _:
                for chunk in reply.closing(chat.include_usage):
                    yield sse(chunk)
        yield DONE

    def _reply(self, chat: ChatRequest) -> ChatReply:
        text = self._text(chat)
        finish = chat.replay.finish or "stop"
        most = len(text) if chat.max_tokens is None else chat.max_tokens * TOKEN_CHARACTERS
        if most < len(text):
            text, finish = text[:most], "length"
        return ChatReply(chat.model, text, finish, chat.choices, chat.prompt_characters)

    def _text(self, chat: ChatRequest) -> str:
        recording, named_scene = self._find(chat.model)
        if chat.replay.raw is not None:
            return chat.replay.raw
        scene = chat.replay.scene or named_scene or ("call" if chat.wants_call else "answer")
        if scene not in recording.scenes:
            names = ", ".join(recording.scenes)
            raise bad_request(f"replay.scene: unknown scene {scene!r}; scenes: {names}.", "replay.scene")
        return recording.scenes[scene]

    def _find(self, model: str) -> tuple[Recording, str | None]:
        if model not in self._models:
            families = ", ".join(name for name in self._models if ":" not in name)
            message = f"The model {model!r} does not exist; models: {families}."
            raise ApiError(404, message, param="model", code="model_not_found")
        return self._models[model]

    def _card(self, name: str) -> JsonObject:
        return {"id": name, "object": "model", "created": self._created, "owned_by": "streamsieve"}


def _models(library: Iterable[Recording]) -> Iterator[tuple[str, tuple[Recording, str | None]]]:
    """`FAMILY` plays the scene that fits the request, `FAMILY:SCENE` that one."""
    for recording in library:
        yield recording.family, (recording, None)
        for scene in recording.scenes:
            yield f"{recording.family}:{scene}", (recording, scene)


def _requested_error(status: int) -> ApiError:
    return ApiError(status, "This error was asked for (replay.error).", "server_error", code="replay_error")


async def _health(request: Request) -> Response:
    return Response(status_code=200)
