"""The `openai` client, wrapped: the server sends raw text, the client gets three trays.

streamsieve serve &
python examples/wrapped_client.py http://127.0.0.1:8000/v1
"""

import sys

from openai import OpenAI

from streamsieve import wrap

base_url = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000/v1"
tools = [{"type": "function", "function": {"name": "get_tide", "parameters": {"type": "object"}}}]
messages = [{"role": "user", "content": "How are the tides in Brest?"}]

with wrap(OpenAI(base_url=base_url, api_key="none"), reasoning_parser="qwen3", tool_parser="hermes") as client:
    message = client.chat.completions.create(model="hermes", messages=messages, tools=tools).choices[0].message
    print("reasoning: ", message.reasoning)
    print("content:   ", message.content)
    for call in message.tool_calls:
        print("tool call: ", call.function.name, call.function.arguments)

    with client.chat.completions.stream(model="hermes", messages=messages, tools=tools) as events:
        for event in events:
            if event.type == "tool_calls.function.arguments.delta":
                print("arguments: ", event.arguments_delta)
        print("finished:  ", events.get_final_completion().choices[0].finish_reason)
