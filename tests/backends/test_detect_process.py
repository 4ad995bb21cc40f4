"""Chat templates as `transformers` renders them, and what a hostile one may not do."""

from __future__ import annotations

import sys

import pytest

from streamsieve.backends import chat_template, template_process
from streamsieve.backends.chat_template import render
from streamsieve.parsers.errors import ConfigurationError

AS_IN_TRANSFORMERS = [
    ("{% if true %}\nx\n{% endif %}\n", "x\n"),  # trim_blocks
    ("    {% if true %}x{% endif %}", "x"),  # lstrip_blocks
    ("{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}", "01"),  # loopcontrols
    ("{{ {'a': 'é <b>'} | tojson }}", '{"a": "é <b>"}'),
    ("{{ [1] | tojson(indent=1) }}", "[\n 1\n]"),
    ("{% generation %}{% if true %}x{% endif %}{% endgeneration %}", "x"),
    ("{{ strftime_now('%d %b %Y') }}", "01 Jan 2026"),
    ("{% set ns = namespace(a=1) %}{% set ns.a = 2 %}{{ ns.a }}", "2"),
    ("{{ given.name }}{{ absent }}", "Brest"),
]


@pytest.mark.parametrize(("template", "text"), AS_IN_TRANSFORMERS)
def test_rendered_as_in_transformers(template: str, text: str) -> None:
    environment = template_process.environment()
    assert environment.from_string(template).render(given={"name": "Brest"}) == text


REFUSED = [
    ("{{ raise_exception('only one call') }}", "TemplateError: only one call"),
    ("{{ 'a' + 1 }}", "TypeError"),
    ("{{ absent.a }}", "UndefinedError"),
    ("{{ ''.__class__.__mro__ }}", "SecurityError"),
    ("{% set ns = namespace() %}{% set ns.__class__ = 1 %}", "SecurityError"),
    ("{{ given.update(a=1) }}", "SecurityError"),
    ("{% for i in range(9999999) %}{% endfor %}", "OverflowError"),
    ("{% for i in range(90000) %}{{ 'x' * 1000 }}{% endfor %}", "more than 4194304 characters"),
]


@pytest.mark.parametrize(("template", "error"), REFUSED)
def test_what_a_template_refuses_or_may_not_do_is_an_error_of_that_rendering(template: str, error: str) -> None:
    answer = template_process.answer({"template": template, "jobs": [{"given": {}}]})
    (result,) = answer["results"]  # type: ignore[misc]
    assert error in result["error"]


def test_each_rendering_stands_for_itself() -> None:
    template = "{% if bad %}{{ raise_exception('bad') }}{% endif %}{{ given }}"
    rendered = render(template, [{"given": "a"}, {"bad": True}, {"given": "é"}])
    assert [result.text for result in rendered.results] == ["a", None, "é"]
    assert rendered.variables == {"bad", "given"}


def test_all_renderings_together_have_one_limit() -> None:
    template = "{{ 'x' * 3000000 }}"
    answer = template_process.answer({"template": template, "jobs": [{}, {}]})
    assert ["text" in result for result in answer["results"]] == [True, False]  # type: ignore[attr-defined]


@pytest.mark.parametrize("template", ["{% if %}", "{{ 'a' | nothing_of_that_name }}", "{% endfor %}"])
def test_what_is_no_template(template: str) -> None:
    with pytest.raises(ConfigurationError, match="none that Jinja reads"):
        render(template, [{}])


def test_a_template_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_template, "SECONDS", 1.0)
    endless = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    with pytest.raises(ConfigurationError, match="more than 1 seconds"):
        render(endless, [{}])


@pytest.mark.skipif(sys.platform != "linux", reason="the limit on memory is one that Linux keeps")
def test_a_template_that_wants_all_memory_gets_little() -> None:
    (rendered,) = render("{{ 'x' * 9999999999 }}", [{}]).results
    assert "MemoryError" in rendered.error


def test_without_jinja_the_error_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_template, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError) as error:
        render("", [])
    assert error.value.name == "jinja2"
