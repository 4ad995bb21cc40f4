"""Ollama. It sorts thinking and calls itself, and knows no `tool_choice`."""

from streamsieve.wire.dialects.dialect import Dialect

OLLAMA = Dialect(
    sources=(
        "https://docs.ollama.com/api/openai-compatibility",
        "https://docs.ollama.com/capabilities/structured-outputs",
        "https://docs.ollama.com/capabilities/thinking",
        "https://github.com/ollama/ollama/blob/main/openai/openai.go",
    ),
    calls="sorted",
    thinking="sorted",
    schema="response_format",
    binds="the reply",
    completions="templated",
    thinking_off={"reasoning_effort": "none"},
    reasoning_field="reasoning",
)
