"""Text Generation Inference. Tools mean a grammar of its own: it sorts calls, and enforces `tool_choice`."""

from streamsieve.wire.dialects.dialect import Dialect

TGI = Dialect(
    sources=(
        "https://huggingface.co/docs/text-generation-inference/basic_tutorials/using_guidance",
        "https://github.com/huggingface/text-generation-inference/blob/main/router/src/infer/tool_grammar.rs",
    ),
    calls="enforced",
    schema="response_format",
    binds="the reply",
)
