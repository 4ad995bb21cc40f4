"""Names to formats and stages, with plugins installed as far as `importlib.metadata` can tell."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from streamsieve.parsers import registry
from streamsieve.parsers.errors import ConfigurationError
from streamsieve.parsers.events import Event
from streamsieve.parsers.format import Format

Install = Callable[..., Path]

ACME_FORMATS = """
from streamsieve.parsers.format import Format
SHOUT = Format(name="shout", tool_names=("shout", "cry"), reasoning_names=("shout",))
"""
ACME_STAGES = """
async def censor(events):
    async for event in events:
        yield event

async def no_generator(events):
    return None

def plain_generator(events):
    yield None
"""


@pytest.fixture(autouse=True)
def fresh_table(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test reads names anew, and leaves neither names nor plugin modules behind."""
    monkeypatch.delenv("STREAMSIEVE_PLUGINS", raising=False)
    registry.reload()
    known = set(sys.modules)
    yield
    registry.reload()
    for module in set(sys.modules) - known:
        if not module.startswith("streamsieve"):
            del sys.modules[module]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a distribution with entry points and modules on `sys.path`."""

    def put(distribution: str, version: str, *, formats: str = "", stages: str = "", **modules: str) -> Path:
        site = tmp_path / distribution
        metadata = site / f"{distribution.replace('-', '_')}-{version}.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        (metadata / "entry_points.txt").write_text(
            f"[streamsieve.formats]\n{formats}\n\n[streamsieve.stages]\n{stages}\n"
        )
        for name, source in modules.items():
            (site / f"{name}.py").write_text(source)
        monkeypatch.syspath_prepend(site)
        return site

    return put


def select(tool_parser: str | None, reasoning_parser: str | None) -> Format:
    found = registry.select(tool_parser=tool_parser, reasoning_parser=reasoning_parser)
    assert found is not None
    return found


def tool(name: str) -> Format:
    return select(name, None)


def reasoning(name: str) -> Format:
    return select(None, name)


def rows(listing: registry.Listing) -> dict[tuple[str, str], dict[str, object]]:
    """The names that are not built in, by kind and name, and what is said of them."""
    kinds: dict[str, list[dict[str, object]]] = json.loads(json.dumps(listing))
    return {
        (kind, str(row.pop("name"))): row
        for kind, found in kinds.items()
        for row in found
        if row["distribution"] != "streamsieve"
    }


def test_a_plugin_format_is_found_under_its_entry_names(install: Install) -> None:
    install(
        "acme-sieve",
        "1.2",
        formats="tool.shout = acme_formats:SHOUT\ntool.cry = acme_formats:SHOUT\nreasoning.shout = acme_formats:SHOUT",
        acme_formats=ACME_FORMATS,
    )
    assert {tool("shout").name, tool("cry").name, reasoning("shout").name} == {"shout"}
    assert rows(registry.listing()) == {
        ("tool", "cry"): {"aliases": ["shout"], "format": "shout", "distribution": "acme-sieve"},
        ("tool", "shout"): {"aliases": ["cry"], "format": "shout", "distribution": "acme-sieve"},
        ("reasoning", "shout"): {"aliases": [], "format": "shout", "distribution": "acme-sieve"},
    }
    with pytest.raises(ConfigurationError, match="reasoning_parser: unknown name 'cry'"):
        reasoning("cry")


def test_a_plugin_is_imported_only_when_its_own_name_is_used(install: Install) -> None:
    install(
        "acme",
        "1.0",
        formats="tool.shout = acme_formats:SHOUT\ntool.explosive = acme_explosive:FORMAT",
        stages="censor = acme_stages:censor",
        acme_formats=ACME_FORMATS,
        acme_explosive="raise SystemError('imported')",
        acme_stages=ACME_STAGES,
    )
    with pytest.raises(ConfigurationError, match="explosive"):
        tool("nothing of the kind")
    assert not {"acme_formats", "acme_explosive", "acme_stages"} & set(sys.modules)
    tool("shout")
    assert "acme_formats" in sys.modules
    assert not {"acme_explosive", "acme_stages"} & set(sys.modules)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("not_there:FORMAT", "ModuleNotFoundError: No module named 'not_there'"),
        ("acme_formats:NOTHING", "AttributeError: module 'acme_formats' has no attribute 'NOTHING'"),
        ("acme_broken:FORMAT", "ZeroDivisionError: division by zero"),
        ("acme_formats:__doc__", "acme_formats:__doc__ is a NoneType, not a Format"),
        ("acme_formats", "acme_formats is a module, not a Format"),
        ("not a reference", "AttributeError"),
    ],
)
def test_a_broken_format_breaks_its_own_name_only(install: Install, value: str, why: str) -> None:
    install(
        "acme",
        "3.1",
        formats=f"tool.bad = {value}\ntool.shout = acme_formats:SHOUT",
        acme_formats=ACME_FORMATS,
        acme_broken="1 / 0",
    )
    assert tool("shout")
    message = f"plugin 'tool.bad' of acme 3.1 is broken: {why}"
    with pytest.raises(ConfigurationError, match=re.escape(f"tool_parser: {message}")):
        tool("bad")
    listed = rows(registry.listing())
    assert str(listed["tool", "bad"].pop("error")).startswith(message)
    assert listed["tool", "bad"] == {"aliases": [], "format": None, "distribution": "acme"}
    assert "error" not in listed["tool", "shout"]


@pytest.mark.parametrize("name", ["shout", "tools.shout", "tool.", ".shout", "stage.shout"])
def test_an_entry_point_of_another_name_is_shown_as_broken(install: Install, name: str) -> None:
    install("acme", "1.0", formats=f"{name} = acme_formats:SHOUT", acme_formats=ACME_FORMATS)
    listed = rows(registry.listing())
    assert list(listed) == [("tool", name)]
    assert "tool.NAME or reasoning.NAME" in str(listed["tool", name]["error"])
    with pytest.raises(ConfigurationError, match=r"of acme 1\.0 is broken: .* tool\.NAME or reasoning\.NAME"):
        tool(name)


def test_a_name_claimed_twice_is_an_error_that_names_both(install: Install) -> None:
    for distribution in ("acme", "bolt"):
        module = f"{distribution}_formats"
        entries = f"tool.shout = {module}:SHOUT\nreasoning.{distribution} = {module}:SHOUT"
        install(distribution, "1.0", formats=entries, **{module: ACME_FORMATS})
    with pytest.raises(ConfigurationError, match=r"'shout' is claimed by acme 1\.0 and bolt 1\.0|bolt 1\.0 and acme"):
        tool("shout")
    assert reasoning("acme")
    assert reasoning("bolt")
    listed = rows(registry.listing())["tool", "shout"]
    assert sorted(str(listed["distribution"]).split(", ")) == ["acme", "bolt"]
    assert "claimed by" in str(listed["error"])


def test_a_plugin_cannot_take_a_built_in_name(install: Install) -> None:
    install("acme", "1.0", formats="tool.hermes = acme_formats:SHOUT", acme_formats=ACME_FORMATS)
    with pytest.raises(ConfigurationError, match=r"'hermes' is claimed by streamsieve itself and acme 1\.0.*PLUGINS"):
        tool("hermes")
    assert tool("mistral")


@pytest.mark.parametrize(
    ("setting", "allowed"),
    [
        ("", set()),
        (" , ", set()),
        ("acme-sieve", {"shout", "cry"}),
        ("Acme_Sieve", {"shout", "cry"}),
        ("tool.cry", {"cry"}),
        ("bolt, tool.shout", {"shout", "loud"}),
        ("acme-sieve,bolt", {"shout", "cry", "loud"}),
        ("somebody-else", set()),
    ],
)
def test_the_environment_says_which_plugins_are_allowed(
    install: Install, monkeypatch: pytest.MonkeyPatch, setting: str, allowed: set[str]
) -> None:
    install(
        "acme-sieve",
        "1.0",
        formats="tool.shout = acme_formats:SHOUT\ntool.cry = acme_formats:SHOUT",
        acme_formats=ACME_FORMATS,
    )
    install("bolt", "1.0", formats="tool.loud = bolt_formats:SHOUT", bolt_formats=ACME_FORMATS)
    monkeypatch.setenv("STREAMSIEVE_PLUGINS", setting)
    assert {name for _, name in rows(registry.listing())} == allowed
    assert tool("hermes")


def test_an_allow_list_settles_a_clash(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    for distribution in ("acme", "bolt"):
        module = f"{distribution}_formats"
        install(distribution, "1.0", formats=f"tool.shout = {module}:SHOUT", **{module: ACME_FORMATS})
    monkeypatch.setenv("STREAMSIEVE_PLUGINS", "bolt")
    tool("shout")
    assert "bolt_formats" in sys.modules
    assert "acme_formats" not in sys.modules


def test_the_table_is_kept_until_reload(install: Install) -> None:
    assert "shout" not in {row["name"] for row in registry.listing()["tool"]}
    install("acme", "1.0", formats="tool.shout = acme_formats:SHOUT", acme_formats=ACME_FORMATS)
    assert "shout" not in {row["name"] for row in registry.listing()["tool"]}
    registry.reload()
    assert "shout" in {row["name"] for row in registry.listing()["tool"]}


# Stages


async def passing(events: AsyncIterator[Event]) -> AsyncIterator[Event]:
    async for event in events:
        yield event


class Callable_:
    async def __call__(self, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
        async for event in events:
            yield event


def test_a_stage_is_a_name_or_a_function(install: Install) -> None:
    install("acme", "1.0", stages="censor = acme_stages:censor", acme_stages=ACME_STAGES)
    assert registry.stage("censor") is sys.modules["acme_stages"].censor
    assert registry.stage(passing) is passing
    instance = Callable_()
    assert registry.stage(instance) is instance
    assert registry.listing()["stages"] == [{"name": "censor", "distribution": "acme"}]
    with pytest.raises(ConfigurationError, match=r"stages: unknown name 'censer'\. Did you mean 'censor'"):
        registry.stage("censer")


@pytest.mark.parametrize("attribute", ["no_generator", "plain_generator", "__spec__"])
def test_a_stage_that_can_be_none_is_refused(install: Install, attribute: str) -> None:
    install(
        "acme",
        "1.0",
        stages=f"bad = acme_stages:{attribute}\ncensor = acme_stages:censor",
        acme_stages=ACME_STAGES,
    )
    with pytest.raises(
        ConfigurationError, match=r"stages: plugin 'bad' of acme 1\.0 is broken: .* is not an async generator function"
    ):
        registry.stage("bad")
    good = registry.stage("censor")
    with pytest.raises(ConfigurationError, match=r"stages: .* is not an async generator function"):
        registry.stage(good.__globals__[attribute])
    broken, fine = registry.listing()["stages"]
    assert "is broken" in broken["error"]
    assert "error" not in fine


# Built-in names


@pytest.mark.parametrize(("tool_parser", "reasoning_parser"), [(None, None), ("none", None), ("none", "none")])
def test_none_is_the_same_as_not_set(tool_parser: str | None, reasoning_parser: str | None) -> None:
    assert registry.select(tool_parser=tool_parser, reasoning_parser=reasoning_parser) is None


def test_one_of_the_two_may_be_none() -> None:
    assert select("hermes", "none") == tool("hermes")
    assert select("none", "qwen3") == reasoning("qwen3")


def test_each_parser_brings_its_own_half_of_a_format() -> None:
    tools, thinking = tool("qwen3_coder"), reasoning("qwen3")
    both, mixed = select("qwen3_coder", "qwen3"), select("hermes", "qwen3")
    assert tools.calls is not None
    assert thinking.reasoning is not None
    assert (thinking.calls, tools.reasoning) == (None, None)
    assert (both.calls, both.reasoning) == (tools.calls, thinking.reasoning)
    assert (mixed.calls, mixed.reasoning) == (tool("hermes").calls, thinking.reasoning)


def test_formats_that_cannot_work_together_are_both_named() -> None:
    with pytest.raises(ConfigurationError, match=r"'qwen3'.*'openai'.*cannot work together"):
        select("openai", "qwen3")


def test_a_misspelt_name_gives_the_choices_closest_first() -> None:
    with pytest.raises(ConfigurationError, match=r"tool_parser: unknown name 'hermse'\. .*'hermes'.*: hermes, "):
        tool("hermse")
    with pytest.raises(ConfigurationError, match=r"reasoning_parser: unknown name 'quen3'\. .*: qwen3, "):
        reasoning("quen3")


BUILT_IN = {
    "tool": "deepseek_v3 deepseek_v31 glm45 glm47 hermes kimi_k2 llama3_json llama4_json llama4_pythonic longcat "
    "mistral olmo3 openai pythonic qwen3_coder qwen3_json qwen3_xml",
    "reasoning": "deepseek_r1 deepseek_v3 glm45 glm47 holo2 kimi_k2 mistral olmo3 openai_gptoss qwen3",
}


def test_every_built_in_name_is_listed_once_with_the_other_names_of_its_format() -> None:
    listing = registry.listing()
    for kind, found in (("tool", listing["tool"]), ("reasoning", listing["reasoning"])):
        assert set(BUILT_IN[kind].split()) <= {row["name"] for row in found}
        names = [row["name"] for row in found]
        assert names == sorted(set(names))
        for row in found:
            assert "error" not in row
            assert row["distribution"] == "streamsieve"
            twins = {other["name"] for other in found if other["format"] == row["format"]} - {row["name"]}
            assert set(row["aliases"]) == twins


def test_a_tool_name_and_a_reasoning_name_may_be_the_same_and_mean_two_formats() -> None:
    assert tool("deepseek_v3") != reasoning("deepseek_v3")
