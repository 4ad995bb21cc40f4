"""llama.cpp's llama-server; where markers are special tokens, started with `--special`."""

from streamsieve.wire.dialects.dialect import Dialect

LLAMA_CPP = Dialect(
    sources=(
        "https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md",
        "https://github.com/ggml-org/llama.cpp/blob/master/docs/function-calling.md",
        "https://github.com/ggml-org/llama.cpp/blob/master/tools/server/server-common.cpp",
    ),
    raw_text={"parse_tool_calls": False, "reasoning_format": "none"},
    # With tools and any other choice it parses, adds a grammar of its own, and refuses one of ours.
    tool_choice="none",
    schema="json_schema",
    constraints=("grammar", "json_schema"),
    binds="the reply",
    completions="constrained",
    reasoning_field="reasoning_content",
    effort_switches=("enable_thinking",),
    continuing={"add_generation_prompt": False},
    continues_unasked=True,  # `--prefill-assistant`, its default
)
