"""A server of which no more is known than that it takes OpenAI's fields, and that it writes raw text."""

from streamsieve.wire.dialects.dialect import Dialect

OPENAI = Dialect(
    sources=(
        "https://platform.openai.com/docs/api-reference/chat/create",
        "https://platform.openai.com/docs/guides/structured-outputs",
    ),
    # The default where there are tools, and the one choice that surely leaves them in the prompt.
    tool_choice="auto",
    schema="response_format",
    binds="the answer",
)
