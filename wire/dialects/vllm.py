"""vLLM, started without a tool parser and without a reasoning parser."""

from streamsieve.wire.dialects.dialect import Dialect

VLLM = Dialect(
    sources=(
        "https://docs.vllm.ai/en/stable/serving/openai_compatible_server.html",
        "https://docs.vllm.ai/en/stable/features/tool_calling.html",
        "https://docs.vllm.ai/en/stable/features/structured_outputs.html",
        # The request as it is checked: ChatCompletionRequest, and what the renderer refuses.
        "https://github.com/vllm-project/vllm/blob/main/vllm/entrypoints/openai/chat_completion/protocol.py",
        "https://github.com/vllm-project/vllm/blob/main/vllm/renderers/online_renderer.py",
    ),
    raw_text={"skip_special_tokens": False, "spaces_between_special_tokens": False},
    end_tokens={"include_stop_str_in_output": True},
    token_ids={"return_token_ids": True},
    # "auto", "required" and names are refused without a tool parser. "none" passes, but some templates tell the
    # model of it and `--exclude-tools-when-tool-choice-none` drops the tools; null is neither seen nor refused.
    tool_choice=None,
    tag="structured_outputs",
    schema="structured_outputs",
    constraints=("structured_outputs",),
    # Only with a reasoning parser of its own does it wait for the end of the thinking.
    binds="the reply",
    completions="constrained",
    reasoning_field="reasoning",
    effort_switches=("enable_thinking",),
    continuing={"add_generation_prompt": False},
)
