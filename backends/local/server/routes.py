"""The API of a model that runs here: chat completions and completions as raw text, and what belongs to them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from streamsieve.backends.local.constraints.request_constraint import RequestConstraint
from streamsieve.backends.local.engine.jobs import EngineDead, EngineFailed, Job, PromptTooLong, QueueFull
from streamsieve.backends.local.server.detokenizer import Detokenizer
from streamsieve.backends.local.server.generation import Generation
from streamsieve.backends.local.server.metrics import Metrics
from streamsieve.backends.local.server.prompt import RenderedPrompt
from streamsieve.backends.local.server.requests import (
    Api,
    Asked,
    check_tools,
    read_asked,
    read_prompts,
    read_token_ids,
)
from streamsieve.backends.local.server.runtime import Runtime
from streamsieve.backends.openai_error import ApiError, bad_request
from streamsieve.backends.prompt_tail import is_told, tell_prompt_tail
from streamsieve.backends.reply import Piece, Reply, Usage
from streamsieve.backends.reply_response import ReplyResponse
from streamsieve.backends.reply_writer import ChatWriter, ReplyWriter, TextWriter
from streamsieve.backends.request_fields import MAX_CHOICES, Body, is_whole, read_body, read_boolean, read_text
from streamsieve.parsers.request import Request as ChatRequest
from streamsieve.wire.request.prepared import request_of


@dataclass(frozen=True, slots=True)
class _Prompt:
    """What one or more choices begin with.

    `echo`: text that is sent before theirs. `is_joined`: their text goes on where the prompt's ends; else a
    leading space that the tokenizer gives the first word is none.
    """

    token_ids: Sequence[int]
    echo: str = ""
    is_joined: bool = True


class Routes:
    """The endpoints. `runtime` raises ApiError while there is none."""

    def __init__(self, runtime: Callable[[], Runtime], metrics: Metrics) -> None:
        self._runtime = runtime
        self._metrics = metrics
        self._created = int(time.time())

    def all(self) -> Sequence[Route]:
        """For a Starlette application."""
        return [
            Route("/v1/chat/completions", self.chat, methods=["POST"]),
            Route("/v1/completions", self.completions, methods=["POST"]),
            Route("/v1/models", self.models),
            Route("/v1/models/{model:path}", self.model),
            Route("/tokenize", self.tokenize, methods=["POST"]),
            Route("/detokenize", self.detokenize, methods=["POST"]),
            Route("/metrics", self.metrics),
        ]

    async def chat(self, request: Request) -> Response:
        """The raw text of chat completions: the middleware on top sorts it."""
        runtime = self._runtime()
        body = await read_body(request)
        asked = read_asked(body, "chat", runtime.served)
        check_tools(body)
        rendered, token_ids = await asyncio.to_thread(_chat_prompt, runtime, body)
        tell_prompt_tail(request.scope, rendered.tail)
        read = replace(request_of(dict(body), runtime.settings), prompt_tail=rendered.tail)
        constraint = await runtime.chats.of(body, read)
        # Parsers look for special tokens, so they are text here, whatever `skip_special_tokens` says.
        if is_told(request.scope):
            asked = replace(asked, ending=replace(asked.ending, kept=runtime.kept_ends))
        prompt = _Prompt(token_ids, is_joined=read_boolean(body, "continue_final_message"))
        reply = self._reply(request, runtime, asked, [prompt], constraint, skip_special=False)
        return self._response(request, reply, ChatWriter(runtime.served.name), asked, "chat")

    async def completions(self, request: Request) -> Response:
        """Completions of bare prompts."""
        runtime = self._runtime()
        body = await read_body(request)
        asked = read_asked(body, "completions", runtime.served)
        prompts = await asyncio.to_thread(_bare_prompts, runtime, body)
        if len(prompts) * asked.choices > MAX_CHOICES:
            raise bad_request(f"prompt, n: more than {MAX_CHOICES} choices.", "n")
        if asked.sampling.logprobs is not None and any(prompt.echo for prompt in prompts):
            raise bad_request("echo: not together with logprobs; those of a prompt are not had.", "echo")
        constraint = await runtime.texts.of(body, ChatRequest())
        reply = self._reply(request, runtime, asked, prompts, constraint, skip_special=asked.skip_special_tokens)
        return self._response(request, reply, TextWriter(runtime.served.name), asked, "completions")

    async def models(self, request: Request) -> Response:
        """The one model."""
        return JSONResponse({"object": "list", "data": [self._card()]})

    async def model(self, request: Request) -> Response:
        """The one model by its name."""
        card = self._card()
        if request.path_params["model"] != card["id"]:
            raise ApiError(404, f"This server has {card['id']!r} only.", param="model", code="model_not_found")
        return JSONResponse(card)

    async def tokenize(self, request: Request) -> Response:
        """The token ids of `prompt`, or of the prompt that a chat request comes to."""
        runtime = self._runtime()
        body = await read_body(request)
        if "messages" in body:
            _, token_ids = await asyncio.to_thread(_chat_prompt, runtime, body)
        elif (prompt := read_text(body, "prompt")) is not None:
            special = read_boolean(body, "add_special_tokens", default=True)
            token_ids = await asyncio.to_thread(runtime.tokenizer.encode, prompt, special=special)
        else:
            raise bad_request("prompt: text, or messages, is required.", "prompt")
        names = map(runtime.tokenizer.token, token_ids) if read_boolean(body, "return_token_strs") else None
        return JSONResponse(
            {
                "count": len(token_ids),
                "max_model_len": runtime.engine.longest,
                "tokens": token_ids,
                "token_strs": None if names is None else list(names),
            }
        )

    async def detokenize(self, request: Request) -> Response:
        """The text of `tokens`."""
        runtime = self._runtime()
        body = await read_body(request)
        token_ids = read_token_ids(body, "tokens", runtime.served.vocabulary)
        return JSONResponse({"prompt": await asyncio.to_thread(runtime.tokenizer.decode, token_ids)})

    async def metrics(self, request: Request) -> Response:
        """Numbers for Prometheus; also while the model loads."""
        return Response(await asyncio.to_thread(self._metrics.text), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    def _card(self) -> dict[str, object]:
        runtime = self._runtime()
        return {
            "id": runtime.served.name,
            "object": "model",
            "created": self._created,
            "owned_by": "streamsieve",
            "max_model_len": runtime.engine.longest,
        }

    def _reply(
        self,
        request: Request,
        runtime: Runtime,
        asked: Asked,
        prompts: Sequence[_Prompt],
        constraint: RequestConstraint | None,
        *,
        skip_special: bool,
    ) -> Reply:
        """Each prompt's choices, none of which is admitted before it is read."""
        tells_ids = asked.return_token_ids or is_told(request.scope)

        def generation(prompt: _Prompt, index: int) -> Generation:
            context = prompt.token_ids if prompt.is_joined else ()
            return Generation(
                run=runtime.engine.generate,
                job=Job(
                    prompt=prompt.token_ids,
                    sampling=asked.sampling.for_choice(index),
                    max_tokens=asked.max_tokens or max(1, runtime.engine.longest - len(prompt.token_ids)),
                    stop_token_ids=asked.ending.eos_token_ids | asked.ending.stop_token_ids,
                    constraint=constraint.start() if constraint is not None else None,
                ),
                detokenizer=Detokenizer(runtime.tokenizer, context, skip_special=skip_special),
                ending=asked.ending,
                texts=runtime.vocabulary.texts,
                tells_ids=tells_ids,
            )

        made = [(prompt, generation(prompt, index)) for prompt in prompts for index in range(asked.choices)]
        choices = [_after(prompt.echo, one.pieces()) if prompt.echo else one.pieces() for prompt, one in made]
        return Reply(choices, lambda: _usage(prompts, [one for _, one in made]))

    def _response(self, request: Request, reply: Reply, writer: ReplyWriter, asked: Asked, route: Api) -> ReplyResponse:
        return ReplyResponse(
            reply,
            writer,
            stream=asked.stream,
            include_usage=asked.include_usage,
            refusal=refusal,
            observer=self._metrics.observer(route),
        )


def refusal(error: Exception) -> ApiError | None:
    """What a client is told of what the engine raises; None for what it should not raise."""
    match error:
        case QueueFull():
            headers = {"retry-after": str(error.retry_after)}
            message = f"Too many requests are waiting; try again in {error.retry_after} s."
            return ApiError(429, message, "rate_limit_error", code="rate_limit_exceeded", headers=headers)
        case PromptTooLong():
            return _too_long(error.length, error.limit, "messages")
        case EngineDead():
            return ApiError(503, "The engine takes no requests.", "server_error", code="engine_dead")
        case EngineFailed():
            return ApiError(500, "The engine failed while it wrote this reply.", "server_error", code="engine_failed")
    return None


def _chat_prompt(runtime: Runtime, body: Body) -> tuple[RenderedPrompt, Sequence[int]]:
    if runtime.template is None:
        raise bad_request("messages: this model has no chat template; use /v1/completions.", "messages")
    rendered = runtime.template.render(body)
    if not is_whole(rendered.text):
        raise bad_request("messages: must be of whole characters.", "messages")
    return rendered, _some(_encoded(runtime, rendered.text, "messages"), "messages")


def _bare_prompts(runtime: Runtime, body: Body) -> list[_Prompt]:
    special = read_boolean(body, "add_special_tokens", default=True)
    echo = read_boolean(body, "echo")
    made = []
    for prompt in read_prompts(body, runtime.served.vocabulary):
        token_ids = _encoded(runtime, prompt, "prompt", special=special) if isinstance(prompt, str) else prompt
        text = (prompt if isinstance(prompt, str) else runtime.tokenizer.decode(prompt)) if echo else ""
        made.append(_Prompt(_some(token_ids, "prompt"), text))
    return made


def _encoded(runtime: Runtime, text: str, param: str, *, special: bool = False) -> Sequence[int]:
    """The tokens of a prompt. Of one that is too long by far none are made: they take a hundred times its memory."""
    least = len(text) // runtime.vocabulary.longest
    if least >= runtime.engine.longest:
        raise _too_long(least, runtime.engine.longest, param)
    return runtime.tokenizer.encode(text, special=special)


def _too_long(length: int, limit: int, param: str) -> ApiError:
    message = f"This model's maximum context length is {limit} tokens. However, your prompt has at least {length}."
    return ApiError(400, message, param=param, code="context_length_exceeded")


def _some(token_ids: Sequence[int], param: str) -> Sequence[int]:
    if not token_ids:
        raise bad_request(f"{param}: the prompt has no tokens.", param)
    return token_ids


async def _after(echo: str, pieces: AsyncGenerator[Piece, None]) -> AsyncGenerator[Piece, None]:
    """`pieces`, with `echo` before the text of the first: a reply that is not admitted must not have begun."""
    async with aclosing(pieces):
        async for piece in pieces:
            yield replace(piece, text=echo + piece.text)
            echo = ""


def _usage(prompts: Sequence[_Prompt], generations: Sequence[Generation]) -> Usage:
    """A prompt counts once, however many choices it has."""
    first = generations[:: len(generations) // len(prompts)]
    return Usage(
        prompt=sum(len(prompt.token_ids) for prompt in prompts),
        completion=sum(generation.tokens for generation in generations),
        cached=sum(generation.job.cached_tokens for generation in first),
    )
