"""Which parsers read which model: the rules behind `auto`, as data.

A rule knows a family by the model's name or by what its chat template writes. Both are guesses; where
a template is at hand, `streamsieve.backends.detection` has the guess prove itself. The sources are the
format cards.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from streamsieve.parsers.errors import ConfigurationError

AUTO = "auto"
"""The parser name that leaves the choice to these rules."""


class Choice(NamedTuple):
    """A pair of parser names; None where the family has no such thing."""

    tool: str | None
    reasoning: str | None


@dataclass(frozen=True, slots=True)
class Rule:
    """One family, or one generation of it.

    `model`: a pattern that is looked for in the model's name, once that is in lower case and written
    with `-` for `_` and blanks.
    `marks`: strings that all stand in the source of the chat template; `without`: none of these does.
    `tokens`: where there is no template, tokens that only this family's tokenizer has.
    """

    tool: str | None
    reasoning: str | None
    model: str = ""
    marks: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()

    @property
    def choice(self) -> Choice:
        """The parsers that the rule names."""
        return Choice(self.tool, self.reasoning)


_DSML = "｜DSML｜"
_KEYS = "<arg_key>"
_FUNCTION = "<function="

# In order: what is more special comes first, for names and for marks alike.
RULES: tuple[Rule, ...] = (
    # Messages that fill all trays.
    Rule("beam", "beam", r"\bbeam-", ("<rfl:parameter",)),
    Rule("openai", "openai_gptoss", r"gpt-?oss", ("<|channel|>", "<|message|>"), ("<rfl:parameter",),
         tokens=("<|channel|>", "<|message|>", "<|constrain|>", "<|call|>", "<|return|>")),
    Rule("musespark1x", "musespark1x", r"muse-?spark"),
    Rule("muse_glimmer", "muse_glimmer", r"muse-?glimmer", ("<atem:invoke", "Glimmer")),
    Rule("muse", "muse", r"\bmuse\b", ("<atem:invoke",)),
    Rule("muse_glimmer", "muse_glimmer", marks=("<atem:invoke",)),
    Rule("inkling", "inkling", r"inkling", ("<|content_invoke_tool_json|>",)),
    # Markers that no other family has.
    Rule("kimi_k3", "kimi_k3", r"kimi-?k3", ("<|open|>", "<|sep|>", "<|close|>")),
    Rule("kimi_k2", None, r"kimi-?k2-(instruct|base)"),
    Rule("kimi_k2", "kimi_k2", r"kimi-?k2", ("<|tool_calls_section_begin|>",)),
    Rule("cohere_command4", "cohere_command4", r"command-?a-?plus|north-?mini-?code",
         ("<|START_ACTION|>", "<|START_TEXT|>")),
    Rule("cohere_command3", "cohere_command3", r"command-?a-?reasoning", ("<|START_ACTION|>",), ("<|START_TEXT|>",)),
    Rule("deepseek_v32", "deepseek_v3", r"deepseek-?v3\.2", (_DSML, "function_calls")),
    Rule("deepseek_v41", "deepseek_v41", r"deepseek-?v4\.1"),
    Rule("deepseek_v4", "deepseek_v4", r"deepseek-?v4", (_DSML,), ("function_calls",)),
    Rule("deepseek_v41", "deepseek_v41", marks=(_DSML,), without=("function_calls",)),
    Rule("deepseek_v31", "deepseek_v3", r"deepseek-?v3\.1", ("<｜tool▁sep｜>",), ("```json",)),
    Rule(None, "deepseek_r1", r"deepseek-?r1.*(distill|qwen|llama)"),
    Rule("deepseek_v3", "deepseek_r1", r"deepseek-?r1", ("<｜tool▁sep｜>", "```json")),
    Rule("deepseek_v3", None, r"deepseek-?v3"),
    Rule("step3", "step3", r"\bstep-?3(?![.\dp])", ("<steptml:invoke",)),
    Rule("minimax_m3", "minimax_m3", r"minimax-?m3", ("]<]minimax[>[",)),
    Rule("minimax_m2", "minimax_m2", r"minimax-?m2", ("<minimax:tool_call>",)),
    Rule("seed_oss", "seed_oss", r"seed-?oss", ("<seed:tool_call>",)),
    Rule("longcat", None, r"longcat", ("<longcat_tool_call>",)),
    Rule("k2_horizon", "k2_horizon", r"k2-?horizon", ("<ifm|tool_call",)),
    Rule("plamo3", "plamo3", r"plamo-?3", ("begin_tool_request",)),
    Rule("functiongemma", None, r"functiongemma", ("<start_function_call>",)),
    Rule("gemma4", "gemma4", r"gemma-?4", ("<|tool_call>", '<|"|>')),
    Rule("gigachat3", None, r"gigachat-?3", ("<|role_sep|>", "<|function_call|>")),
    Rule("gigachat3", None, marks=("<|role_sep|>", "function call")),
    Rule("apertus", None, r"apertus", ("<|tools_prefix|>",)),
    Rule("internlm", None, r"internlm-?2", ("<|action_start|>", "<|plugin|>")),
    Rule("lfm2", "deepseek_r1", r"lfm-?2.*thinking"),
    Rule("lfm2", None, r"lfm-?2", ("<|tool_call_start|>",)),
    Rule("dots", None, r"\bdots", ("<dots_function_call>",)),
    Rule("minicpm5", None, r"minicpm-?5", ("<function name=", "<param name=")),
    Rule("mistral", "mistral", r"magistral|ministral-3|mistral-(medium|large)-3", ("[TOOL_CALLS]",)),
    Rule("phi4_mini_json", None, r"phi-?4-(mini|multimodal)-instruct", ("functools",)),
    # Keys and values between tags; the turn tokens tell whose.
    Rule("hy_v3", "hy_v3", r"\b(hy|hunyuan)-?v?3\b", (_KEYS, "tool_sep")),
    Rule("hy_v4", "hy_v4", r"\b(hy|hunyuan)-?v?4\b", (_KEYS, "tool_calls>")),
    Rule("poolside_v1", "poolside_v1", r"laguna", (_KEYS, "<assistant>")),
    Rule("ling3", "ling3", r"\b(ling|ring)-?3", (_KEYS, "<role>")),
    Rule("glm45", "glm45", r"glm-?4\.[56]", (_KEYS, "/nothink")),
    Rule("glm47", "glm47", r"glm-?(4\.7|5)", (_KEYS,)),
    # Qwen's function tags, and those who took them over.
    Rule("step3p5", "step3p5", r"\bstep-?3[.p][5-9]"),
    Rule("step5", "step5", r"\bstep-?5"),
    Rule("qwen3_coder", "nemotron_v3", r"nemotron-?3", (_FUNCTION, "truncate_history_thinking")),
    Rule("qwen3_coder", "minicpmv", r"minicpm-?(v|o)-?[45]"),
    Rule("qwen3_coder", "granite_thinking_parser", r"granite-?4\.2"),
    Rule("mimo", "mimo", r"mimo-?v2"),
    Rule("qwen3_coder", None, r"qwen-?3.*coder"),
    Rule("qwen3_coder", "qwen3", r"qwen-?3\.[5-9]", (_FUNCTION,)),
    Rule("mimo", "mimo", marks=(_FUNCTION,)),
    # JSON between tags.
    Rule("hunyuan_a13b", "hunyuan_a13b", r"hunyuan-?a13b", ("<tool_calls>", "<answer>")),
    Rule("jamba", None, r"jamba", ("<tool_calls>",), (_KEYS, "<answer>")),
    Rule("ernie45", "ernie45", r"ernie-?4\.5.*(thinking|vl)", ("<tool_call>", "<response>")),
    Rule("granite-20b-fc", None, r"granite-?20b-?function", ("<function_call>",)),
    Rule("granite4", None, r"granite-?4", ("<tool_call>", "<|start_of_role|>")),
    Rule("granite", "granite", r"granite-?3\.2", ("<|start_of_role|>",)),
    Rule("granite", None, r"granite-?3\.[01]"),
    Rule("hermes", None, r"hermes-?[23]|qwen-?2\.5|qwen-?3.*instruct"),
    Rule("hermes", "deepseek_r1", r"qwq"),
    Rule("hermes", "holo2", r"holo-?2"),
    Rule("xlam", None, r"xlam"),
    Rule("hermes", "qwen3", r"qwen-?3", ("<tool_call>",)),
    # Python, and JSON with nothing round it: nothing in the template is theirs alone, so these come last.
    Rule("olmo3", "olmo3", r"olmo-?3.*think", ("<function_calls>",), (_DSML,)),
    Rule("olmo3", None, r"olmo-?3"),
    Rule("pythonic", None, r"toolace"),
    Rule("llama4_pythonic", None, r"llama-?4", ("<|python_start|>",)),
    Rule("llama4_json", None, marks=("<|header_start|>", "parameters")),
    Rule("llama3_json", None, r"llama-?3\.[123]", ("<|start_header_id|>", "parameters")),
    Rule("mistral", None, r"mistral|mixtral|ministral|devstral|pixtral"),
    Rule(None, "deepseek_r1", r"phi-?4.*reasoning", ("<think>",)),
    Rule("xlam", None, marks=("tool_calls", "tojson")),
    Rule("pythonic", None, marks=("tool_calls",)),
)  # fmt: skip

NEVER_CHOSEN = {
    "qwen3_json": "another name of hermes",
    "qwen3_xml": "another name of qwen3_coder",
    "minimax_m2_append_think": "a matter of taste: it leaves the thinking in the content",
    "hf": "it is for tokenizers with a response_template, where no other parser is found",
}
"""Parser names that no rule gives, and why."""

THINKERS = (("<think>", "qwen3"), ("<think>", "deepseek_r1"), ("<think>", "deepseek_v3"))
"""For a template with thinking that is not, or not only, its family's own: what stands in it, and who may read that.

The first two think unless told otherwise, the first until a call at the latest; the third only when asked to.
"""

SWITCHES: tuple[tuple[str, object, object], ...] = (
    ("enable_thinking", True, False),
    ("thinking", True, False),
    ("thinking_mode", "enabled", "disabled"),
    ("reasoning_effort", "high", "no_think"),
    ("reasoning_effort", "high", "none"),
    ("thinking_budget", -1, 0),
)
"""Keys of `chat_template_kwargs` that switch thinking, with what turns it on and off."""


def by_name(model: str) -> Choice | None:
    """What the first rule says that knows the model's name."""
    name = re.sub(r"[_\s]+", "-", model.lower())
    return next((rule.choice for rule in RULES if rule.model and re.search(rule.model, name)), None)


def by_template(template: str) -> Iterator[Choice]:
    """What the rules say that know the template, the likeliest first."""
    for rule in RULES:
        if (
            rule.marks
            and all(map(template.__contains__, rule.marks))
            and not any(map(template.__contains__, rule.without))
        ):
            others = [Choice(rule.tool, reader) for mark, reader in THINKERS if mark in template]
            yield from (rule.choice, *others) if rule.reasoning else (*others, rule.choice)


def by_tokens(tokens: Collection[str]) -> Choice | None:
    """What the rule says that knows the tokenizer by its special tokens."""
    return next((rule.choice for rule in RULES if rule.tokens and set(rule.tokens) <= set(tokens)), None)


def resolved(tool_parser: str | None, reasoning_parser: str | None, model: str | None) -> Choice:
    """The two names with `auto` replaced by what the rules say of a model of this name.

    A name is all this looks at: who has the template asks `streamsieve.backends.detection`. Raises
    ConfigurationError where no rule knows the name, or none is given.
    """
    asked = [option for option, name in (("tool_parser", tool_parser), ("reasoning_parser", reasoning_parser))
             if name == AUTO]  # fmt: skip
    if not asked:
        return Choice(tool_parser, reasoning_parser)
    options = ", ".join(asked)
    if not model:
        raise ConfigurationError(f"{options}: 'auto' needs model, the name of the model that writes the replies")
    found = by_name(model)
    if found is None:
        raise ConfigurationError(
            f"{options}: no rule knows the model name {model!r}. Set the parsers by hand; `streamsieve detect PATH` "
            "finds them where the model's chat template is at hand"
        )
    return Choice(
        found.tool if tool_parser == AUTO else tool_parser,
        found.reasoning if reasoning_parser == AUTO else reasoning_parser,
    )
