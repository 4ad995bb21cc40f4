"""A stage that hides mail addresses in the answer."""

import re
from collections.abc import AsyncIterator

from streamsieve.parsers.events import Content, Event

ADDRESS = re.compile(r"[\w.+-]+@[\w-]+(\.[\w-]+)+")
UNFINISHED = re.compile(r"[\w.+@-]*\Z")


async def redact(events: AsyncIterator[Event]) -> AsyncIterator[Event]:
    """Replace addresses in the content; what may still become one is held until it is known."""
    held = ""
    async for event in events:
        if isinstance(event, Content):
            text = held + event.text
            cut = UNFINISHED.search(text).start()
            text, held = text[:cut], text[cut:]
        else:
            text, held = held, ""
        if text:
            yield Content(ADDRESS.sub("[mail address]", text))
        if not isinstance(event, Content):
            yield event
    if held:
        yield Content(ADDRESS.sub("[mail address]", held))
