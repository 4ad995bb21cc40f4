"""Errors by who is wrong: the configuration is (here); model text never is (contract, rule 12)."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterable


class ConfigurationError(ValueError):
    """A setting cannot work. The message names the option, the value and what may be chosen."""


class Inexpressible(ValueError):
    """A format has no text for this message, or no structural tag for this demand."""


_LONGEST = 200
_SHORT = reprlib.Repr()
_SHORT.maxstring = _LONGEST


def unknown_choice(option: str, value: object, choices: Iterable[str]) -> ConfigurationError:
    """The error for `value`, which may be anything, given to `option`: the choices, closest first."""
    names = sorted(set(choices))
    said = value[:_LONGEST] if isinstance(value, str) else _SHORT.repr(value)
    close = difflib.get_close_matches(said, names, n=len(names) or 1, cutoff=0.0)
    near = difflib.get_close_matches(said, names, n=3, cutoff=0.6)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return ConfigurationError(
        f"{option}: unknown name {_SHORT.repr(value)}.{hint} Choices: {', '.join(close) or 'there are none'}"
    )
