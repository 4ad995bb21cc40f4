"""The rules behind `auto`: whom they know by name, and that every parser name is accounted for."""

from __future__ import annotations

import re

import pytest

from streamsieve.parsers import registry, rules
from streamsieve.parsers.errors import ConfigurationError
from streamsieve.parsers.rules import AUTO, Choice

MODELS: list[tuple[str, str | None, str | None]] = [
    ("swiss-ai/Apertus-8B-Instruct-2509", "apertus", None),
    ("CohereLabs/command-a-reasoning-08-2025", "cohere_command3", "cohere_command3"),
    ("CohereLabs/command-a-plus", "cohere_command4", "cohere_command4"),
    ("deepseek-ai/DeepSeek-V3-0324", "deepseek_v3", None),
    ("deepseek-ai/DeepSeek-R1-0528", "deepseek_v3", "deepseek_r1"),
    ("deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", None, "deepseek_r1"),
    ("deepseek-ai/DeepSeek-V3.1", "deepseek_v31", "deepseek_v3"),
    ("deepseek-ai/DeepSeek-V3.2-Exp", "deepseek_v32", "deepseek_v3"),
    ("deepseek-ai/DeepSeek-V4", "deepseek_v4", "deepseek_v4"),
    ("deepseek-ai/DeepSeek-V4.1", "deepseek_v41", "deepseek_v41"),
    ("rednote-hilab/dots.llm1.inst", "dots", None),
    ("baidu/ERNIE-4.5-21B-A3B-Thinking", "ernie45", "ernie45"),
    ("google/functiongemma-270m-it", "functiongemma", None),
    ("google/gemma-4-27b-it", "gemma4", "gemma4"),
    ("ai-sage/GigaChat3-10B-A1.8B", "gigachat3", None),
    ("zai-org/GLM-4.5-Air", "glm45", "glm45"),
    ("zai-org/GLM-4.6", "glm45", "glm45"),
    ("zai-org/GLM-4.7-Flash", "glm47", "glm47"),
    ("zai-org/GLM-5", "glm47", "glm47"),
    ("ibm-granite/granite-20b-functioncalling", "granite-20b-fc", None),
    ("ibm-granite/granite-3.1-8b-instruct", "granite", None),
    ("ibm-granite/granite-3.2-8b-instruct", "granite", "granite"),
    ("ibm-granite/granite-4.0-h-small", "granite4", None),
    ("ibm-granite/granite-4.2-small", "qwen3_coder", "granite_thinking_parser"),
    ("NousResearch/Hermes-3-Llama-3.1-8B", "hermes", None),
    ("Hcompany/Holo2-8B", "hermes", "holo2"),
    ("tencent/Hunyuan-A13B-Instruct", "hunyuan_a13b", "hunyuan_a13b"),
    ("tencent/HY-V3", "hy_v3", "hy_v3"),
    ("tencent/HY-V4", "hy_v4", "hy_v4"),
    ("internlm/internlm2_5-7b-chat", "internlm", None),
    ("ai21labs/AI21-Jamba-1.5-Mini", "jamba", None),
    ("ifm/K2-Horizon", "k2_horizon", "k2_horizon"),
    ("moonshotai/Kimi-K2-Instruct-0905", "kimi_k2", None),
    ("moonshotai/Kimi-K2-Thinking", "kimi_k2", "kimi_k2"),
    ("moonshotai/Kimi-K3", "kimi_k3", "kimi_k3"),
    ("LiquidAI/LFM2-1.2B", "lfm2", None),
    ("LiquidAI/LFM2.5-1.2B-Thinking", "lfm2", "deepseek_r1"),
    ("inclusionAI/Ling-3", "ling3", "ling3"),
    ("meta-llama/Llama-3.1-8B-Instruct", "llama3_json", None),
    ("Meta Llama 3.1 8B Instruct", "llama3_json", None),
    ("meta-llama/Llama-4-Scout-17B-16E-Instruct", "llama4_pythonic", None),
    ("meituan-longcat/LongCat-Flash-Chat", "longcat", None),
    ("XiaomiMiMo/MiMo-V2-Flash", "mimo", "mimo"),
    ("openbmb/MiniCPM5-8B", "minicpm5", None),
    ("openbmb/MiniCPM-V-4_5", "qwen3_coder", "minicpmv"),
    ("MiniMaxAI/MiniMax-M2.1", "minimax_m2", "minimax_m2"),
    ("MiniMaxAI/MiniMax-M3", "minimax_m3", "minimax_m3"),
    ("mistralai/Magistral-Small-2509", "mistral", "mistral"),
    ("mistralai/Mistral-Nemo-Instruct-2407", "mistral", None),
    ("meta/muse", "muse", "muse"),
    ("meta/Muse-Glimmer", "muse_glimmer", "muse_glimmer"),
    ("meta/Muse-Spark-1", "musespark1x", "musespark1x"),
    ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B", "qwen3_coder", "nemotron_v3"),
    ("allenai/Olmo-3-7B-Instruct", "olmo3", None),
    ("allenai/Olmo-3-32B-Think", "olmo3", "olmo3"),
    ("openai/gpt-oss-120b", "openai", "openai_gptoss"),
    ("microsoft/Phi-4-mini-instruct", "phi4_mini_json", None),
    ("microsoft/Phi-4-mini-reasoning", None, "deepseek_r1"),
    ("pfnet/plamo-3-nict-8b", "plamo3", "plamo3"),
    ("poolside/Laguna-XS", "poolside_v1", "poolside_v1"),
    ("Team-ACE/ToolACE-2-Llama-3.1-8B", "pythonic", None),
    ("Qwen/Qwen2.5-7B-Instruct", "hermes", None),
    ("Qwen/QwQ-32B", "hermes", "deepseek_r1"),
    ("Qwen/Qwen3-8B", "hermes", "qwen3"),
    ("Qwen/Qwen3-30B-A3B-Instruct-2507", "hermes", None),
    ("Qwen/Qwen3-30B-A3B-Thinking-2507", "hermes", "qwen3"),
    ("Qwen/Qwen3-Coder-30B-A3B-Instruct", "qwen3_coder", None),
    ("Qwen/Qwen3.5-35B-A3B", "qwen3_coder", "qwen3"),
    ("ByteDance-Seed/Seed-OSS-36B-Instruct", "seed_oss", "seed_oss"),
    ("stepfun-ai/step3", "step3", "step3"),
    ("stepfun-ai/Step-3.5-Flash", "step3p5", "step3p5"),
    ("stepfun-ai/Step-5", "step5", "step5"),
    ("Salesforce/Llama-xLAM-2-8b-fc-r", "xlam", None),
]


@pytest.mark.parametrize(("model", "tool", "reasoning"), MODELS, ids=[model for model, _, _ in MODELS])
def test_known_by_name(model: str, tool: str | None, reasoning: str | None) -> None:
    assert rules.by_name(model) == Choice(tool, reasoning)


@pytest.mark.parametrize("model", ["gpt-4o", "SmolLM2-135M-Instruct", "model", "gemma-3-4b-it", "Yi-34B-Chat", ""])
def test_unknown_by_name(model: str) -> None:
    assert rules.by_name(model) is None


TOOLS = """apertus beam cohere_command3 cohere_command4 deepseek_v3 deepseek_v31 deepseek_v32 deepseek_v4 deepseek_v41
dots ernie45 functiongemma gemma4 gigachat3 glm45 glm47 granite granite-20b-fc granite4 hermes hf hunyuan_a13b hy_v3
hy_v4 inkling internlm jamba k2_horizon kimi_k2 kimi_k3 lfm2 ling3 llama3_json llama4_json llama4_pythonic longcat mimo
minicpm5 minimax_m2 minimax_m3 mistral muse muse_glimmer musespark1x olmo3 openai phi4_mini_json plamo3 poolside_v1
pythonic qwen3_coder qwen3_json qwen3_xml seed_oss step3 step3p5 step5 xlam"""
REASONING = """beam cohere_command3 cohere_command4 deepseek_r1 deepseek_v3 deepseek_v4 deepseek_v41 ernie45 gemma4
glm45 glm47 granite granite_thinking_parser hf holo2 hunyuan_a13b hy_v3 hy_v4 inkling k2_horizon kimi_k2 kimi_k3 ling3
mimo minicpmv minimax_m2 minimax_m2_append_think minimax_m3 mistral muse muse_glimmer musespark1x nemotron_v3 olmo3
openai_gptoss plamo3 poolside_v1 qwen3 seed_oss step3 step3p5 step5"""


def test_every_parser_name_is_given_by_a_rule_or_left_out_for_a_reason() -> None:
    tools, reasoning = TOOLS.split(), REASONING.split()
    assert (len(tools), len(reasoning)) == (58, 42)
    assert {*tools} - {rule.tool for rule in rules.RULES} <= {*rules.NEVER_CHOSEN}
    assert {*reasoning} - {rule.reasoning for rule in rules.RULES} <= {*rules.NEVER_CHOSEN}


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: f"{rule.tool}-{rule.reasoning}")
def test_a_rule_can_be_followed(rule: rules.Rule) -> None:
    assert rule.model or rule.marks
    assert re.compile(rule.model).pattern == rule.model.lower()
    assert registry.select(tool_parser=rule.tool, reasoning_parser=rule.reasoning) is not None


def test_gpt_oss_is_known_by_its_tokens() -> None:
    tokens = ["<|channel|>", "<|message|>", "<|constrain|>", "<|call|>", "<|return|>", "<|start|>"]
    assert rules.by_tokens(tokens) == Choice("openai", "openai_gptoss")
    assert rules.by_tokens(tokens[1:]) is None


def test_a_family_without_thinking_of_its_own_may_have_that_of_others() -> None:
    found = [choice for choice in rules.by_template("<longcat_tool_call> <think>") if choice.tool]
    assert found == [Choice("longcat", reasoning) for reasoning in ("qwen3", "deepseek_r1", "deepseek_v3", None)]
    assert list(rules.by_template("<longcat_tool_call>")) == [Choice("longcat", None)]


def test_what_a_family_has_of_its_own_comes_first() -> None:
    found = list(rules.by_template("<seed:tool_call> <think>"))
    assert found[0] == Choice("seed_oss", "seed_oss")
    assert Choice("seed_oss", "qwen3") in found


RESOLVED = [
    (("hermes", "qwen3", None), Choice("hermes", "qwen3")),
    ((None, None, "anything"), Choice(None, None)),
    ((AUTO, AUTO, "Qwen/Qwen3-8B"), Choice("hermes", "qwen3")),
    ((AUTO, None, "Qwen/Qwen3-8B"), Choice("hermes", None)),
    (("qwen3_coder", AUTO, "Qwen/Qwen3-8B"), Choice("qwen3_coder", "qwen3")),
]


@pytest.mark.parametrize(("given", "choice"), RESOLVED)
def test_auto_becomes_a_name(given: tuple[str | None, str | None, str | None], choice: Choice) -> None:
    assert rules.resolved(*given) == choice


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((AUTO, AUTO, None), ["tool_parser, reasoning_parser", "needs model"]),
        (("hermes", AUTO, ""), ["reasoning_parser:", "needs model"]),
        ((AUTO, None, "gpt-4o"), ["tool_parser:", "'gpt-4o'", "streamsieve detect"]),
    ],
)
def test_auto_without_an_answer(given: tuple[str | None, str | None, str | None], words: list[str]) -> None:
    with pytest.raises(ConfigurationError) as error:
        rules.resolved(*given)
    assert [word for word in words if word not in str(error.value)] == []
