"""The step of `prepare` for requests of the Responses API."""

from __future__ import annotations

from streamsieve.wire.prepared import Prepared
from streamsieve.wire.responses.request import as_chat
from streamsieve.wire.responses.translation import translated

PATH = "/responses"
CHAT_PATH = "/chat/completions"


def choose_api(prepared: Prepared) -> None:
    """See which API the client speaks by its path, and ask the upstream by one that it has.

    Steps after this find a chat completion request, but where the upstream speaks the Responses API
    (`upstream_api`) and is sent what the client wrote. Raises Refused for what chat completions cannot do.
    """
    if not prepared.path.endswith(PATH):
        return
    prepared.api = prepared.upstream_api = "responses"
    if prepared.settings.responses == "parse":
        prepared.read(as_chat(prepared.body))
        return
    prepared.upstream_api = "chat"
    prepared.path = prepared.path.removesuffix(PATH) + CHAT_PATH
    prepared.send(translated(prepared.body))
    prepared.read(prepared.body)
