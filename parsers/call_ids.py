"""Ids for tool calls, in the forms that the cards ask for."""

from __future__ import annotations

import re
import secrets
import string
from collections.abc import Callable

CallId = Callable[[str, int, str | None], str]
"""(name, number, native id) -> id. `number` counts the calls of the whole conversation from 0; the
native id is what the model itself wrote, if anything."""

_MISTRAL_ID = re.compile(r"[A-Za-z0-9]{9}")
_LETTERS = string.ascii_letters + string.digits


def random_id(name: str, number: int, native: str | None) -> str:
    """`chatcmpl-tool-` and 32 random hex digits, as vLLM makes them."""
    return f"chatcmpl-tool-{secrets.token_hex(16)}"


def mistral_id(name: str, number: int, native: str | None) -> str:
    """Nine letters and digits: Mistral's templates refuse any other id in the history (card: mistral)."""
    if native is not None and _MISTRAL_ID.fullmatch(native):
        return native
    return "".join(secrets.choice(_LETTERS) for _ in range(9))


def kimi_id(name: str, number: int, native: str | None) -> str:
    """The header as the model wrote it, `functions.NAME:NUMBER`, else made that way (card: kimi_k2)."""
    return native or f"functions.{name}:{number}"
