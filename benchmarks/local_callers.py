"""What clients ask of the local server in its soak, each kind with what has to be true of its answer."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field

import httpx2
from jsonschema import Draft202012Validator

from benchmarks.local_heard import Body, Choice, Heard, faults

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
WAIT = 120.0
"""Seconds in which every request is answered."""

SCHEMAS = 20
"""Different ones: compiled grammars are kept, and memory has to come to an end of growing."""

_REST = 12
"""Tokens that a budget of thinking may be passed by: white space before it is not counted, and no character is cut."""

_WORDS = ["tide", "boat", "harbour", "morning", "lantern", "north", "quiet", "seven", "Bodø", "🌊", "bell", "wind"]
_LEAVES = 0.2
"""Of the clients, so many leave at some time."""


@dataclass
class Tally:
    """What came of all clients together."""

    asked: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    tokens: int = 0
    bound: int = 0
    """Replies that came to their end under a schema, and are true to it."""
    pairs: int = 0
    apart: int = 0
    """Pairs of replies of one seed, and those of them that differ."""
    slowest: float = 0.0
    faults: list[str] = field(default_factory=list)


@dataclass
class Caller:
    """One client, that asks one thing after the other. `room`: replies that the server runs or queues at once."""

    client: httpx2.AsyncClient
    chance: random.Random
    tally: Tally
    room: int
    longest: int
    kind: str = ""

    async def run(self, until: float) -> None:
        """Ask until the loop's time is `until`."""
        clock = asyncio.get_running_loop().time
        while clock() < until:
            kind = self.chance.choices([*KINDS], [*KINDS.values()])[0]
            self.kind = kind.__name__.strip("_")
            self.tally.asked[self.kind] += 1
            began = clock()
            try:
                async with asyncio.timeout(WAIT):
                    await kind(self)
            except TimeoutError:
                self.fault(f"no answer in {WAIT:g} s")
            except httpx2.TransportError as error:
                self.fault(f"the connection broke: {error!r}")
            self.tally.slowest = max(self.tally.slowest, clock() - began)

    def fault(self, said: str) -> None:
        """Something is wrong with an answer."""
        self.tally.faults.append(f"{self.kind}: {said}")

    def words(self, count: int) -> str:
        """So many of them."""
        return " ".join(self.chance.choices(_WORDS, k=count))

    def sampling(self) -> dict[str, object]:
        """Any that there is."""
        chance = self.chance
        every = {
            "temperature": chance.choice([0, 0.7, 1.0, 1.5]),
            "top_p": chance.choice([0.3, 0.95, 1]),
            "top_k": chance.choice([-1, 1, 5, 300]),
            "min_p": chance.choice([0, 0.1]),
            "presence_penalty": chance.uniform(-2, 2),
            "frequency_penalty": chance.uniform(-2, 2),
            "repetition_penalty": chance.choice([1, 1.3]),
            "seed": chance.randrange(1 << 40),
            "logit_bias": {str(chance.randrange(250)): chance.uniform(-100, 5)},
            "min_tokens": chance.randrange(4),
        }
        return {name: every[name] for name in chance.sample([*every], chance.randrange(5))}

    async def chat(self, fields: Body, *, stays: bool = False) -> Heard:
        """A chat with these fields. Unless it `stays`, the client may leave on the way."""
        prompt = {"messages": [{"role": "user", "content": self.words(self.chance.randint(1, 40))}]}
        return await self.reply(CHAT, {**prompt, "max_tokens": self.chance.randint(1, 24), **fields}, stays=stays)

    async def reply(self, path: str, body: Body, *, stays: bool = False) -> Heard:
        """The answer to a request for text, streamed or not, after a look at what holds for all of them."""
        if "stream" not in body and self.chance.random() < 0.6:
            body = {**body, "stream": True}
        if body.get("stream") is True:
            body = {**body, "stream_options": {"include_usage": True}}
        heard = Heard()
        leaves = None if stays or self.chance.random() > _LEAVES else self.chance.uniform(0, 1.5)
        try:
            async with asyncio.timeout(leaves) as limit:
                await self.send(path, body, heard)
        except TimeoutError:
            if not limit.expired():
                raise
        self.tally.statuses["left" if not heard.is_whole else str(heard.status)] += 1
        self.tally.tokens += heard.usage.get("completion_tokens", 0)
        choices, most = body.get("n", 1), body.get("max_tokens", self.longest)
        assert isinstance(choices, int)
        assert isinstance(most, int)
        for said in faults(heard, choices, choices * most):
            self.fault(said)
        if heard.status == 429:
            await asyncio.sleep(self.chance.uniform(0.2, 1))
        return heard

    async def send(self, path: str, body: Body, heard: Heard) -> None:
        """Ask, and put into `heard` what comes."""
        content = json.dumps(body, allow_nan=True).encode()
        async with self.client.stream("POST", path, content=content) as response:
            heard.status = response.status_code
            heard.retry_after = response.headers.get("retry-after", "")
            heard.is_streamed = response.headers["content-type"].startswith("text/event-stream")
            if heard.is_streamed:
                async for line in response.aiter_lines():
                    if line.startswith("data: "):
                        heard.take_event(line.removeprefix("data: "))
            else:
                heard.take_body(await response.aread())
            heard.is_whole = True


async def _chats(caller: Caller) -> None:
    await caller.chat(caller.sampling())


async def _completions(caller: Caller) -> None:
    prompt: object = caller.words(8)
    if caller.chance.random() < 0.3:
        prompt = [[caller.chance.randrange(200) for _ in range(12)], [65, 66]]
    count = len(prompt) if isinstance(prompt, list) else 1
    body = {"prompt": prompt, "max_tokens": 12, "return_token_ids": True, **caller.sampling()}
    heard = Heard()
    if count == 1:
        heard = await caller.reply(COMPLETIONS, body)
    else:  # as many choices as prompts
        await caller.send(COMPLETIONS, {**body, "stream": False}, heard)
        if heard.status != 429:
            caller.tally.faults += (f"completions: {said}" for said in faults(heard, count, 12 * count))
    told = sum(choice.token_ids for choice in heard.replies)
    if heard.replies and told != heard.usage["completion_tokens"]:
        caller.fault(f"{told} token ids of {heard.usage['completion_tokens']} came")


async def _two_choices(caller: Caller) -> None:
    await caller.chat({"n": 2, **caller.sampling()})


async def _stop_strings(caller: Caller) -> None:
    stops = caller.chance.sample(["e", "a", "th", "7", " ", "ing", "\n"], 3)
    heard = await caller.chat({"stop": stops, "max_tokens": 40})
    for choice in heard.replies:
        if found := [stop for stop in stops if stop in choice.text]:
            caller.fault(f"{found} in {choice.text!r}")


async def _seeds(caller: Caller) -> None:
    """The same twice at once, streamed and not: neither may lose a thing, or have it twice."""
    same: dict[str, object] = {
        "messages": [{"role": "user", "content": caller.words(9)}],
        "seed": caller.chance.randrange(1 << 40),
        "top_k": 5,
        "max_tokens": 16,
    }
    one, other = await asyncio.gather(
        *(caller.chat({**same, "stream": stream}, stays=True) for stream in (True, False))
    )
    for first, second in zip(one.replies, other.replies, strict=False):
        caller.tally.pairs += 1
        caller.tally.apart += (first.text, first.reasoning, first.calls) != (
            second.text,
            second.reasoning,
            second.calls,
        )


async def _logprobs(caller: Caller) -> None:
    heard = await caller.chat({"logprobs": True, "top_logprobs": 3, "top_k": 20})
    for choice in heard.replies:
        if any(len(_list(entry["top_logprobs"])) != 3 for entry in choice.logprobs):
            caller.fault(f"not three alternatives of each token: {choice.logprobs}")
        written = bytes(byte for entry in choice.logprobs for byte in _list(entry["bytes"]) if isinstance(byte, int))
        if choice.text.strip("\N{REPLACEMENT CHARACTER}") not in written.decode(errors="replace"):
            caller.fault(f"the tokens are {written!r}, the text is {choice.text!r}")


def _schema(number: int) -> dict[str, object]:
    """One that a reply of any model comes to the end of."""
    chance = random.Random(number)
    properties: dict[str, object] = {
        "unit": {"enum": ["celsius", "kelvin"]},
        "days": {"type": "integer", "minimum": 0, "maximum": 99},
        "note": {"type": "string", "maxLength": chance.randint(1, 6)},
        "flags": {"type": "array", "items": {"type": "boolean"}, "maxItems": 3},
        "place": {"type": ["null", "boolean"]},
    }
    names = chance.sample([*properties], chance.randint(0, 2))
    schema = {name: properties[name] for name in names}
    return {"type": "object", "properties": schema, "required": names, "additionalProperties": False}


def _unthinking(chance: random.Random) -> dict[str, object]:
    """Thinking that is off, or soon over."""
    if chance.random() < 0.5:
        return {"chat_template_kwargs": {"enable_thinking": False}}
    return {"thinking_token_budget": chance.randrange(6)}


async def _forced_calls(caller: Caller) -> None:
    number = caller.chance.randrange(SCHEMAS)
    schemas = {"get_tide": _schema(number), "post_note": _schema(number + 1)}
    tools = [
        {"type": "function", "function": {"name": name, "parameters": schema, "strict": True}}
        for name, schema in schemas.items()
    ]
    named = {"type": "function", "function": {"name": "get_tide"}}
    choice = caller.chance.choice(["required", named])
    forced = {"tools": tools, "tool_choice": choice, "parallel_tool_calls": False, "max_tokens": 200}
    heard = await caller.chat({**forced, **_unthinking(caller.chance)})
    for ended in _ended(heard):
        if len(ended.calls) != 1:
            caller.fault(f"{len(ended.calls)} calls, {ended.text!r}")
        for name, arguments in ended.calls.values():
            _hold(caller, schemas.get(name, False), arguments)


async def _schemas(caller: Caller) -> None:
    schema = _schema(caller.chance.randrange(SCHEMAS))
    form = {"type": "json_schema", "json_schema": {"name": "it", "schema": schema, "strict": True}}
    heard = await caller.chat({"response_format": form, "max_tokens": 200, **_unthinking(caller.chance)})
    for choice in _ended(heard):
        _hold(caller, schema, choice.text)


def _ended(heard: Heard) -> Iterator[Choice]:
    """Those that were not cut."""
    return (choice for choice in heard.replies if choice.finishes != ["length"])


def _hold(caller: Caller, schema: Mapping[str, object] | bool, text: str) -> None:
    """Hold `text` to `schema`."""
    try:
        Draft202012Validator(schema).validate(json.loads(text))
    except ValueError as error:
        caller.fault(f"{text!r} is no JSON: {error}")
    except Exception as error:
        caller.fault(f"{text!r} is not true to {schema}: {error!r:.200}")
    else:
        caller.tally.bound += 1


async def _budgets(caller: Caller) -> None:
    budget = caller.chance.randrange(1, 8)
    heard = await caller.chat({"thinking_token_budget": budget, "max_tokens": 24})
    if heard.replies and heard.usage.get("reasoning_tokens", 0) > budget + _REST:
        caller.fault(f"{heard.usage} for a budget of {budget}")


async def _bad_requests(caller: Caller) -> None:
    path, fields, param = caller.chance.choice(BAD)
    prompt = {"messages": [{"role": "user", "content": "Hi"}]} if path == CHAT else {"prompt": "Hi"}
    heard = await caller.reply(path, {**prompt, "max_tokens": 2, **fields}, stays=True)
    if heard.status not in (400, 404) or heard.error is None or heard.error["param"] not in (param, None):
        caller.fault(f"{fields}: {heard.status}, {heard.error}")


async def _long_prompts(caller: Caller) -> None:
    messages = [{"role": "user", "content": "tide " * 5 * caller.longest}]
    heard = await caller.chat({"messages": messages}, stays=True)
    if (heard.status, (heard.error or {}).get("code")) != (400, "context_length_exceeded"):
        caller.fault(f"{heard.status}, {heard.error}")


async def _bursts(caller: Caller) -> None:
    """More at once than there is room for: some are turned away, the rest are answered."""
    await asyncio.gather(*(caller.chat({"max_tokens": 8}) for _ in range(2 * caller.room)))


async def _services(caller: Caller) -> None:
    text = caller.words(5)
    tokens, back = Heard(), Heard()
    await caller.send("/tokenize", {"prompt": text}, tokens)
    await caller.send("/detokenize", {"tokens": tokens.body["tokens"]}, back)
    if back.body["prompt"] != text:
        caller.fault(f"{text!r} came back as {back.body['prompt']!r}")
    for path in ("/health", "/metrics", "/v1/models"):
        if (status := (await caller.client.get(path)).status_code) != 200:
            caller.fault(f"{path}: {status}")


def _list(value: object) -> list[object]:
    assert isinstance(value, list)
    return value


BAD: list[tuple[str, dict[str, object], str]] = [
    (CHAT, {"temperature": -1}, "temperature"),
    (CHAT, {"temperature": float("nan")}, "temperature"),
    (CHAT, {"top_p": 0, "stream": True}, "top_p"),
    (CHAT, {"n": 1000}, "n"),
    (CHAT, {"stop": [1]}, "stop"),
    (CHAT, {"stop": ["x"] * 99}, "stop"),
    (CHAT, {"messages": []}, "messages"),
    (CHAT, {"messages": [{"role": "user", "content": "half a pair: \ud83d"}]}, "messages"),
    (CHAT, {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content"),
    (CHAT, {"model": "another"}, "model"),
    (CHAT, {"tempurature": 1}, "tempurature"),
    (CHAT, {"tool_choice": "required"}, "tool_choice"),
    (CHAT, {"tools": [{"type": "function"}]}, "tools"),
    (CHAT, {"logit_bias": {"x": 1}}, "logit_bias"),
    (CHAT, {"top_logprobs": 3}, "top_logprobs"),
    (CHAT, {"response_format": {"type": "xml"}}, "response_format"),
    (CHAT, {"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "x"}}}}, "response_format"),
    (CHAT, {"structured_outputs": {"regex": "("}}, "structured_outputs.regex"),
    (CHAT, {"thinking_token_budget": -1}, "thinking_token_budget"),
    (CHAT, {"continue_final_message": True, "add_generation_prompt": True}, "continue_final_message"),
    (COMPLETIONS, {"prompt": []}, "prompt"),
    (COMPLETIONS, {"prompt": [-1]}, "prompt"),
    (COMPLETIONS, {"prompt": [10**12]}, "prompt"),
    (COMPLETIONS, {"prompt": ""}, "prompt"),
    (COMPLETIONS, {"max_tokens": 0}, "max_tokens"),
    (COMPLETIONS, {"echo": True, "logprobs": 1}, "echo"),
    (COMPLETIONS, {"best_of": 2}, "best_of"),
]
"""Requests that are refused, and the field that is named."""

KINDS: dict[Callable[[Caller], Awaitable[None]], int] = {
    _chats: 12,
    _completions: 6,
    _two_choices: 4,
    _stop_strings: 4,
    _seeds: 4,
    _logprobs: 4,
    _forced_calls: 8,
    _schemas: 6,
    _budgets: 4,
    _bad_requests: 6,
    _long_prompts: 1,
    _bursts: 1,
    _services: 3,
}
"""How often each comes up."""
