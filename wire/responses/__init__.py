"""The Responses API (https://platform.openai.com/docs/api-reference/responses), streamed and whole.

Two ways to it: the upstream speaks it itself and leaves raw text in its messages (`upstream_stream`,
`upstream_whole`), or it has chat completions only and is asked by them (`translation`, `from_chat_stream`,
`from_chat_whole`). Either way the events of the parser become output items by one encoder, `output`.
"""
