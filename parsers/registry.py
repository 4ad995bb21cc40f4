"""Names to formats and stages: the built-in ones and those of plugins.

A tool parser's name and a reasoning parser's name are different name spaces. The built-in formats are
the `FORMATS` of the modules in `streamsieve.parsers.formats`, imported at the first look-up. The table
of names is made once a process.
"""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from typing import Generic, Literal, NotRequired, TypedDict, TypeVar, cast, get_args

from streamsieve.parsers import formats, plugins
from streamsieve.parsers.chain import NOT_A_STAGE, Stage
from streamsieve.parsers.errors import ConfigurationError, unknown_choice
from streamsieve.parsers.format import Format, combine
from streamsieve.parsers.formats.response_template import HF, templated

Kind = Literal["tool", "reasoning"]
T = TypeVar("T")
_OURS = "streamsieve"


class NameEntry(TypedDict):
    """One format name; `format` is None and `error` says why where its plugin is broken."""

    name: str
    aliases: list[str]
    format: str | None
    distribution: str
    error: NotRequired[str]


class StageEntry(TypedDict):
    """One stage name."""

    name: str
    distribution: str
    error: NotRequired[str]


class Listing(TypedDict):
    """Every name there is."""

    tool: list[NameEntry]
    reasoning: list[NameEntry]
    stages: list[StageEntry]


@cache
def families() -> tuple[tuple[str, tuple[Format, ...]], ...]:
    """The modules in `parsers/formats/`: what each says of itself, and its `FORMATS`."""
    modules = [import_module(f"{formats.__name__}.{found.name}") for found in pkgutil.iter_modules(formats.__path__)]
    return tuple((inspect.getdoc(module) or "", module.FORMATS) for module in modules)


def built_in() -> tuple[Format, ...]:
    """The formats of this package, each once."""
    return tuple(format for _, family in families() for format in family)


def select(
    *, tool_parser: str | None, reasoning_parser: str | None, response_template: Mapping[str, object] | None = None
) -> Format | None:
    """The format that reads replies by these two names; "none" is the same as None.

    None where neither is set. `response_template` is what `hf` reads by; other names do not look at it.
    Raises `ConfigurationError` for an unknown, broken or doubly claimed name, for two formats that cannot
    work together, and for a template that is missing or wrong.
    """
    tool = templated(_format("tool", tool_parser), response_template, "tool")
    reasoning = templated(_format("reasoning", reasoning_parser), response_template, "reasoning")
    return combine(reasoning, tool, names=(reasoning_parser, tool_parser)) if tool or reasoning else None


def named(kind: Kind, name: str) -> Format:
    """The format behind a name with both of its halves, where `select` gives the half that the name asks for.

    Raises ConfigurationError as `select` does.
    """
    return _claimed(_formats(kind), f"{kind}_parser", name)


def add(kind: Kind, format: Format, names: Sequence[str], owner: str) -> None:
    """Let these names choose `format` in this process; `owner` is told where another claims one of them.

    For formats that are made while the program runs. The same owner may add its names anew.
    """
    for name in names:
        _ADDED[kind, name, owner] = _Claim(owner, owner, names, partial(_same, format))
    reload()


def stage(chosen: str | Stage) -> Stage:
    """The stage of that name, or the given function itself once it is known to be fit for one."""
    if isinstance(chosen, str):
        return _claimed(_stages(), "stages", chosen)
    if fault := _stage_fault(chosen):
        raise ConfigurationError(f"stages: {fault}")
    return chosen


def listing() -> Listing:
    """What `streamsieve list --json` prints. Loads every plugin; a broken one is listed with its error."""
    return {
        "tool": list(_name_entries("tool")),
        "reasoning": list(_name_entries("reasoning")),
        "stages": list(_stage_entries()),
    }


def reload() -> None:
    """Forget the table of names, so that the next look-up reads installed packages and environment anew."""
    _formats.cache_clear()
    _stages.cache_clear()


@dataclass(frozen=True, slots=True)
class _Claim(Generic[T]):
    """One distribution's claim to a name; `same` are all the names of the same thing, this one too."""

    distribution: str
    owner: str
    same: Sequence[str]
    load: Callable[[], T]


_Claims = Mapping[str, Sequence[_Claim[T]]]
_ADDED: dict[tuple[Kind, str, str], _Claim[Format]] = {}


def _format(kind: Kind, name: str | None) -> Format | None:
    return None if name is None or name == "none" else named(kind, name)


def _claimed(claims: _Claims[T], option: str, name: str) -> T:
    """What the one claim to `name` stands for."""
    if name not in claims:
        raise unknown_choice(option, name, claims)
    try:
        return _sole(name, claims[name]).load()
    except ConfigurationError as error:
        raise ConfigurationError(f"{option}: {error}") from error.__cause__


def _sole(name: str, claims: Sequence[_Claim[T]]) -> _Claim[T]:
    if len(claims) == 1:
        return claims[0]
    owners = " and ".join(claim.owner for claim in claims)
    raise ConfigurationError(
        f"the name {name!r} is claimed by {owners}: uninstall one, or set {plugins.ALLOWED} to the plugins to allow"
    )


@cache
def _formats(kind: Kind) -> _Claims[Format]:
    added = ((name, claim) for (of_kind, name, _), claim in _ADDED.items() if of_kind == kind)
    return _by_name([*_built_in(kind), *_plugged_in(kind), *added])


@cache
def _stages() -> _Claims[Stage]:
    return _by_name(
        (plugin.name, _Claim(plugin.distribution, plugin.owner, [plugin.name], partial(_load_stage, plugin)))
        for plugin in plugins.installed(plugins.STAGES)
    )


def _by_name(claims: Iterable[tuple[str, _Claim[T]]]) -> _Claims[T]:
    table: dict[str, list[_Claim[T]]] = {}
    for name, claim in claims:
        table.setdefault(name, []).append(claim)
    return table


def _built_in(kind: Kind) -> Iterator[tuple[str, _Claim[Format]]]:
    for format in (*built_in(), HF):
        names = format.tool_names if kind == "tool" else format.reasoning_names
        for name in names:
            yield name, _Claim(_OURS, f"{_OURS} itself", names, partial(_same, format))


def _plugged_in(kind: Kind) -> Iterator[tuple[str, _Claim[Format]]]:
    named: list[tuple[str, plugins.Plugin]] = []
    for plugin in plugins.installed(plugins.FORMATS):
        prefix, _, name = plugin.name.partition(".")
        if name and prefix in get_args(Kind):
            if prefix == kind:
                named.append((name, plugin))
        elif kind == "tool":  # it belongs to neither kind, and is to be seen somewhere
            yield plugin.name, _Claim(plugin.distribution, plugin.owner, [plugin.name], partial(_misnamed, plugin))
    for name, plugin in named:
        same = [other for other, twin in named if twin.value == plugin.value]
        yield name, _Claim(plugin.distribution, plugin.owner, same, partial(plugin.load, Format))


def _same(format: Format) -> Format:
    return format


def _misnamed(plugin: plugins.Plugin) -> Format:
    raise plugin.broken("a format's entry point is called tool.NAME or reasoning.NAME")


def _load_stage(plugin: plugins.Plugin) -> Stage:
    found = plugin.load(object)
    if fault := _stage_fault(found):
        raise plugin.broken(fault)
    return cast(Stage, found)


def _stage_fault(found: object) -> str | None:
    """What shows before it is called that something is no stage."""
    if callable(found) and not inspect.iscoroutinefunction(found) and not inspect.isgeneratorfunction(found):
        return None
    return f"{getattr(found, '__qualname__', repr(found))} {NOT_A_STAGE}"


def _name_entries(kind: Kind) -> Iterator[NameEntry]:
    for name, claims in sorted(_formats(kind).items()):
        entry: NameEntry = {
            "name": name,
            "aliases": [other for other in claims[0].same if other != name],
            "format": None,
            "distribution": ", ".join(claim.distribution for claim in claims),
        }
        try:
            entry["format"] = _sole(name, claims).load().name
        except ConfigurationError as error:
            entry["error"] = str(error)
        yield entry


def _stage_entries() -> Iterator[StageEntry]:
    for name, claims in sorted(_stages().items()):
        entry: StageEntry = {"name": name, "distribution": ", ".join(claim.distribution for claim in claims)}
        try:
            _sole(name, claims).load()
        except ConfigurationError as error:
            entry["error"] = str(error)
        yield entry
