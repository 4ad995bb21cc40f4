"""Texts and messages to try a format with: what its laws are put to the test on.

Everything random comes from the `Random` that the caller seeds, so that a failure can be had again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from random import Random

from streamsieve.parsers.events import CallArguments, Content, Reasoning
from streamsieve.parsers.format import Format
from streamsieve.parsers.request import Request
from streamsieve.parsers.results import Message, ToolCall
from streamsieve.parsers.tables import tables

Tray = type[Content] | type[Reasoning] | type[CallArguments]

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "file.save",
            "parameters": {
                "type": "object",
                "properties": {
                    "body": {"type": "string"},
                    "size": {"type": "integer"},
                    "ratio": {"type": "number"},
                    "ready": {"type": "boolean"},
                    "tags": {"type": "array"},
                    "meta": {"type": "object"},
                    "note": {"type": ["string", "null"]},
                },
            },
        },
    },
    {"type": "function", "function": {"name": "ping", "parameters": {"type": "object", "properties": {}}}},
]
PROSE = "a quick brown ox jumps over one lazy dog; " * 20 + "an end."
FINISHES = ("stop", "length", "content_filter", None)
_WRECKS = ("ping", "file.save", '{"body": "é\\n', '"}', "{", "}", "[", "]", "<", "\n", " ", "ü 🙂")
HOSTILE = {
    "angles": "<",
    "brackets": "[",
    "braces": '{"a":',
    "near markers": "<tool_cal<|tool_call_begi[TOOL_CALL</thin",
    "spaces": " ",
    "lines": "\n",
    "quotes": '"\\',
    "json openers": '<tool_call>{"arguments":{"k":"',
    "function openers": "<function=a><parameter=b>",
    "list openers": '[TOOL_CALLS][{"arguments":[',
}
"""Units that a hostile text repeats, to go behind any marker."""


def markers(format: Format) -> list[str]:
    """What means something in a reply, in some state of it; nothing is known of message grammars."""
    known = tables(format, True, False)
    return sorted({marker for table in (known.content, known.group, *known.reasoning) for marker in table.roles})


def fragments(format: Format, replies: Iterable[str] = ()) -> list[str]:
    """What replies in `format` are made of: its markers, whole replies, and things that break them."""
    return [*markers(format), *replies, *_WRECKS]


def cut(text: str, sizes: Sequence[int]) -> list[str]:
    """`text` in pieces of these sizes, taken again from the first when they run out."""
    pieces: list[str] = []
    at = 0
    while at < len(text):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(text[at : at + size])
        at += size
    return pieces


def reply(random: Random, known: Sequence[str]) -> str:
    """Fragments in any order, with a few pieces cut out or put in."""
    text = "".join(random.choices(known, k=random.randint(0, 6)))
    for _ in range(random.randint(0, 3)):
        at = random.randint(0, len(text))
        inserted = random.choice(known) if random.random() < 0.5 else noise(random, 5)
        text = text[:at] + inserted + text[at + random.randint(0, 12) :]
    return text


def noise(random: Random, length: int) -> str:
    """Up to so many characters of any kind but surrogates."""
    limits = (0x7F, 0x2FF, 0xD7FF, 0x10FFFF)
    points = (random.randint(0, random.choice(limits)) for _ in range(random.randint(0, length)))
    return "".join(chr(point) for point in points if not 0xD800 <= point <= 0xDFFF)


def asked(format: Format, *, thinking: bool | None = True, **more: object) -> Request:
    """A request with the tools above, its thinking on or off by the keys of the format, or not said (None)."""
    return Request.from_body({"tools": TOOLS, "chat_template_kwargs": _switched(format, thinking), **more})


def request(random: Random, format: Format) -> Request:
    """Such a request with calls or without, in parallel or not, thinking on, off or not said."""
    return asked(
        format,
        thinking=random.choice([None, None, True, False]),
        tool_choice=random.choice(["auto", "auto", "auto", "none"]),
        parallel_tool_calls=random.choice([True, True, False]),
    )


def _switched(format: Format, thinking: bool | None) -> dict[str, object]:
    if format.reasoning is None or thinking is None:
        return {}
    switch = format.reasoning.switch
    kwargs: dict[str, object] = dict.fromkeys(switch.keys, thinking)
    if switch.level:
        key, nothing = switch.level
        kwargs[key] = "high" if thinking else nothing
    return kwargs


def message(random: Random, format: Format) -> Message:
    """A message of what `format` has, its texts without markup, its arguments with anything."""
    most = 0 if not calls_are_known(format) else 1 if format.calls and format.calls.calls_in_reply == "one" else 3
    calls = [_call(random) for _ in range(random.randint(0, most))]
    if not speaks_beside_calls(format) and calls:
        return Message(_words(random) if thinks(format) else None, None, calls)
    return Message(_words(random) if thinks(format) else None, _words(random), calls)


def thinks(format: Format) -> bool:
    """Whether the format has a reasoning tray."""
    return format.messages is not None or (format.reasoning is not None and not restored(format))


def restored(format: Format) -> str:
    """What the format puts before a reply's content, which nobody wrote, and which no message can be read as."""
    span = format.reasoning
    return span.pairs[0][0] if span and span.starts == "restored" else ""


def calls_are_known(format: Format) -> bool:
    """Whether the format has calls."""
    return format.calls is not None or format.messages is not None


def arguments_stream(format: Format) -> bool:
    """Whether a call's arguments go out as they come; some cards have it that later text may change earlier."""
    return format.messages is not None or (format.calls is not None and format.calls.arguments_out == "as they come")


def speaks_beside_calls(format: Format) -> bool:
    """Whether content may stand beside calls: not where calls count at the start alone."""
    return not (format.calls and format.calls.answer_starts and not format.calls.line_starts)


def told(format: Format, tray: Tray) -> str:
    """A reply whose prose goes to `tray`."""
    call = ToolCall("id", "file.save", json.dumps({"body": PROSE}))
    return format.render(
        Message(
            PROSE if tray is Reasoning else None,
            PROSE if tray is Content else None,
            [call] if tray is CallArguments else [],
        ),
        asked(format),
    )


_LETTERS = "abcdefghijklmnopqrstuvwxyzABC0123456789äöü🙂.,;:!?()'-"


def _words(random: Random) -> str | None:
    words = ("".join(random.choices(_LETTERS, k=random.randint(1, 9))) for _ in range(random.randint(0, 6)))
    return " ".join(words) or None


def _call(random: Random) -> ToolCall:
    values: dict[str, object] = {
        "body": noise(random, 60).strip(),  # some formats trim a value that stands raw between tags
        "size": random.randint(-(10**15), 10**15),
        "ratio": random.uniform(-1e9, 1e9),
        "ready": random.random() < 0.5,
        "tags": [noise(random, 20), random.randint(-9, 9)],
        "meta": {noise(random, 6): noise(random, 20)},
    }
    keys = random.sample(sorted(values), random.randint(0, 4))
    name = "file.save" if keys else random.choice(["file.save", "ping"])
    arguments = json.dumps({key: values[key] for key in keys}, ensure_ascii=random.random() < 0.5)
    return ToolCall("id", name, arguments)
