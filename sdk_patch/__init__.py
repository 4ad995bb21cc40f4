"""The transport shell round an `Exchange`, under the `openai` client.

`wrap(client)` for a client that exists, `SieveTransport` and `AsyncSieveTransport` for those who build
their own `http_client`, `reasoning(message)` to read the tray that the SDK has no name for. openai 3
speaks through httpx2 and openai 2 through httpx; neither is imported here: the one that what you hand
in comes from is the one used.
"""

from streamsieve.sdk_patch.client import wrap
from streamsieve.sdk_patch.factories import AsyncSieveTransport, SieveTransport
from streamsieve.sdk_patch.reasoning import reasoning

__all__ = ["AsyncSieveTransport", "SieveTransport", "reasoning", "wrap"]
