"""SGLang, started without a tool-call parser and without a reasoning parser."""

from streamsieve.wire.dialects.dialect import Dialect

SGLANG = Dialect(
    sources=(
        "https://docs.sglang.ai/basic_usage/openai_api_completions.html",
        "https://docs.sglang.ai/advanced_features/structured_outputs.html",
        "https://docs.sglang.ai/advanced_features/tool_parser.html",
        "https://github.com/sgl-project/sglang/pull/30917",  # token ids: refused for streamed chat completions
        # The request as it is checked, and what becomes of its tools.
        "https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/entrypoints/openai/protocol.py",
        "https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/entrypoints/openai/serving_chat.py",
    ),
    raw_text={"skip_special_tokens": False, "separate_reasoning": False},
    end_tokens={"no_stop_trim": True},
    token_ids={"return_token_ids": True},
    ids_in_streams=False,
    # "none" takes the tools out of the prompt; without a parser "auto" is not parsed, and not constrained.
    tool_choice="auto",
    tag="response_format",
    schema="response_format",
    constraints=("regex", "ebnf"),
    # Only with a reasoning parser of its own does it wait for the end of the thinking.
    binds="the reply",
    completions="constrained",
    reasoning_field="reasoning_content",
    effort_switches=("thinking", "enable_thinking"),
)
