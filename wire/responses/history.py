"""The input of a response as the messages of a chat completion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NoReturn

from streamsieve.wire.json_text import JsonObject
from streamsieve.wire.request.refusal import Refused

_ROLES = {"user": "user", "system": "system", "developer": "system", "assistant": "assistant"}
"""Chat templates know no developer."""

Place = str
"""Where in the request something stands, as `input[2].content`."""


def messages_of(instructions: object, given: object) -> list[JsonObject]:
    """The messages for `instructions` and `input`; raises Refused for what chat completions cannot say."""
    history = _History()
    if instructions is not None:
        if not isinstance(instructions, str):
            _refuse("instructions", "a string")
        if instructions:
            history.system(instructions)
    if isinstance(given, str):
        history.add({"role": "user", "content": given})
    elif isinstance(given, list) and given:
        for number, item in enumerate(given):
            _take(item, f"input[{number}]", history)
    else:
        _refuse("input", "a string, or a list of items that is not empty")
    return history.messages


class _History:
    """Messages, the newest last. What an assistant says in one turn, in several items, is one message of it."""

    def __init__(self) -> None:
        self.messages: list[JsonObject] = []

    def add(self, message: JsonObject) -> None:
        self.messages.append(message)

    def system(self, content: object) -> None:
        """Joined to one that stands right before: many chat templates take one only, and that first."""
        last = self.messages[-1] if self.messages else {}
        if last.get("role") == "system" and isinstance(last["content"], str) and isinstance(content, str):
            last["content"] += "\n\n" + content
        else:
            self.add({"role": "system", "content": content})

    def turn(self) -> JsonObject:
        """The message of the assistant's open turn."""
        if not self.messages or self.messages[-1]["role"] != "assistant":
            self.add({"role": "assistant", "content": None})
        return self.messages[-1]

    def append(self, field: str, text: str) -> None:
        """More text in a field of the assistant's open turn."""
        turn = self.turn()
        turn[field] = str(turn.get(field) or "") + text


def _take(item: object, where: Place, history: _History) -> None:
    if not isinstance(item, dict):
        _refuse(where, "an object")
    kind = item.get("type", "message")
    if not isinstance(kind, str):
        _refuse(f"{where}.type", "a string")
    reader = _READERS.get(kind)
    if reader is None:
        raise Refused(
            f"{where}: items of type {kind!r} cannot be sent to a chat completions upstream; "
            f"types: {', '.join(_READERS)}.",
            where,
            "unsupported_value",
        )
    reader(item, where, history)


def _take_message(item: JsonObject, where: Place, history: _History) -> None:
    given = item.get("role")
    role = _ROLES.get(given) if isinstance(given, str) else None
    if role is None:
        _refuse(f"{where}.role", f"one of {', '.join(_ROLES)}")
    if role == "assistant":
        for part in _parts(item.get("content"), f"{where}.content"):
            match part:
                case {"type": "text", "text": str(text)}:
                    history.append("content", text)
                case {"type": "refusal", "refusal": str(text)}:
                    history.append("refusal", text)
                case {"type": kind}:
                    _refuse(f"{where}.content", f"text from the assistant, not {kind!r}")
        return
    content = _content(item.get("content"), f"{where}.content")
    if role == "system":
        history.system(content)
    else:
        history.add({"role": role, "content": content})


def _take_reasoning(item: JsonObject, where: Place, history: _History) -> None:
    """The thinking itself, or else its summary. What is there only encrypted is nothing that we can read."""
    for holder in ("content", "summary"):
        parts = item.get(holder)
        texts = [part.get("text") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
        text = "".join(text for text in texts if isinstance(text, str))
        if text:
            history.append("reasoning", text)
            return


def _take_call(item: JsonObject, where: Place, history: _History) -> None:
    for name in ("call_id", "name", "arguments"):
        if not isinstance(item.get(name), str):
            _refuse(f"{where}.{name}", "a string")
    function = {"name": item["name"], "arguments": item["arguments"]}
    calls = history.turn().setdefault("tool_calls", [])
    assert isinstance(calls, list)
    calls.append({"id": item["call_id"], "type": "function", "function": function})


def _take_result(item: JsonObject, where: Place, history: _History) -> None:
    if not isinstance(item.get("call_id"), str):
        _refuse(f"{where}.call_id", "a string")
    content = _content(item.get("output"), f"{where}.output")
    history.add({"role": "tool", "tool_call_id": item["call_id"], "content": content})


_READERS: Mapping[str, Callable[[JsonObject, Place, _History], None]] = {
    "message": _take_message,
    "reasoning": _take_reasoning,
    "function_call": _take_call,
    "function_call_output": _take_result,
}


def _content(content: object, where: Place) -> object:
    """The content of a chat message: a string where it is one text, else its parts."""
    parts = _parts(content, where)
    return parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "text" else parts


def _parts(content: object, where: Place) -> list[JsonObject]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        _refuse(where, "a string or a list of parts")
    return [_part(part, f"{where}[{number}]") for number, part in enumerate(content)]


def _part(part: object, where: Place) -> JsonObject:
    if not isinstance(part, dict):
        _refuse(where, "a part with a type")
    match part:
        case {"type": "input_text" | "output_text" | "text", "text": str(text)}:
            return {"type": "text", "text": text}
        case {"type": "refusal", "refusal": str(text)}:
            return {"type": "refusal", "refusal": text}
        case {"type": "input_image", "image_url": str(url)}:
            return {"type": "image_url", "image_url": {"url": url, **_given(part, "detail")}}
        case {"type": "input_audio", "input_audio": dict(audio)}:
            return {"type": "input_audio", "input_audio": audio}
        case {"type": "input_file", "file_data": str(data)}:
            return {"type": "file", "file": {"file_data": data, **_given(part, "filename")}}
        case {"type": str(kind)}:
            raise Refused(
                f"{where}: a part of type {kind!r} cannot be sent to a chat completions upstream as it is; text, "
                "an input_image with an image_url, input_audio, or an input_file with file_data can.",
                where,
                "unsupported_value",
            )
    _refuse(where, "a part with a type")


def _given(part: JsonObject, name: str) -> JsonObject:
    return {name: part[name]} if part.get(name) is not None else {}


def _refuse(where: Place, wanted: str) -> NoReturn:
    raise Refused(f"{where}: must be {wanted}.", where)
