"""What every message grammar says of itself: formats whose messages fill all three trays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from streamsieve.parsers.call_writer import CallWriter
from streamsieve.parsers.request import Request
from streamsieve.parsers.results import Message
from streamsieve.parsers.scanner import Reading
from streamsieve.parsers.trays import Trays


@dataclass(frozen=True, kw_only=True)
class MessageSyntax(ABC):
    """How a format writes a reply as messages, each with a header that says which tray its body goes to."""

    @abstractmethod
    def read(self, calls: CallWriter, trays: Trays, request: Request) -> Reading[None]:
        """Read the whole reply. A message that goes wrong is given back whole (contract, rule 7)."""

    @abstractmethod
    def write(self, message: Message, request: Request) -> str:
        """The message as the format writes it."""
