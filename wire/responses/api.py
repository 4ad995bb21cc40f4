"""The step of `prepare` for requests of the Responses API."""

from __future__ import annotations

from streamsieve.wire.request.prepared import Prepared
from streamsieve.wire.request.tool_choice import ToolChoice
from streamsieve.wire.responses.request import as_chat, tool_choice
from streamsieve.wire.responses.translation import translated

PATH = "/responses"
CHAT_PATH = "/chat/completions"


def choose_api(prepared: Prepared) -> None:
    """See which API the client speaks by its path, and ask the upstream by one that it has.

    Steps after this find a chat completion request, but where the upstream speaks the Responses API
    (`upstream_api`) and is sent what the client wrote. Raises Refused for what chat completions cannot do, and for
    a `tool_choice` that asks for calls which there cannot be.
    """
    if not prepared.path.endswith(PATH):
        return
    prepared.api = prepared.upstream_api = "responses"
    settings = prepared.settings
    if settings.responses == "parse" and settings.render_prompt is None:  # which asks for completions only
        prepared.read(as_chat(prepared.body))
        if settings.reads_calls and not settings.shadow:
            ToolChoice.of(prepared.body | {"tool_choice": tool_choice(prepared.body)}, prepared.request)
        _ask_for_raw_text(prepared)
        return
    prepared.upstream_api = "chat"
    prepared.path = prepared.path.removesuffix(PATH) + CHAT_PATH
    prepared.send(translated(prepared.body))
    prepared.read(prepared.body)


def _ask_for_raw_text(prepared: Prepared) -> None:
    """The fields of the upstream's dialect that leave the markers in the text; it takes them by either API."""
    settings, dialect = prepared.settings, prepared.settings.dialect
    if dialect is None or settings.format is None or settings.shadow:
        return
    prepared.ask(dialect.raw_text)
