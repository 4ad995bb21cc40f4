"""A stage of one's own that really awaits: each call is looked up in a database before it goes out.

    python examples/awaiting_stage.py

A stage is an async generator function: events in, events out. Here it drops the calls that the database
does not allow; the indices of those that remain are put right behind it.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator

from openai import OpenAI

from streamsieve import SieveMiddleware
from streamsieve.backends.loopback import loopback
from streamsieve.backends.replay import replay
from streamsieve.parsers.events import CallArguments, CallEnd, CallStart, Content, Event

database = sqlite3.connect(":memory:", check_same_thread=False)
database.execute("create table allowed (name text)")
database.execute("insert into allowed values ('get_tide')")


def is_allowed(name: str) -> bool:
    return database.execute("select 1 from allowed where name = ?", [name]).fetchone() is not None


async def allowed_calls(events: AsyncIterator[Event]) -> AsyncIterator[Event]:
    dropped = set()
    async for event in events:
        match event:
            case CallStart(index, name) if not await asyncio.to_thread(is_allowed, name):
                dropped.add(index)
                yield Content(f"({name} is not allowed.)")
            case CallArguments(index) | CallEnd(index) if index in dropped:
                continue
            case _:
                yield event


app = SieveMiddleware(replay(), reasoning_parser="qwen3", tool_parser="hermes", stages=[allowed_calls])

if __name__ == "__main__":
    tools = [{"type": "function", "function": {"name": name}} for name in ("get_tide", "post_note")]
    messages = [{"role": "user", "content": "Look up the tide in Brest and leave a note."}]
    with loopback(app) as url, OpenAI(base_url=url + "/v1", api_key="none") as client:
        choice = client.chat.completions.create(model="hermes:parallel", messages=messages, tools=tools).choices[0]
        print("content:  ", choice.message.content)
        print("tool call:", [call.function.name for call in choice.message.tool_calls])
    database.close()
