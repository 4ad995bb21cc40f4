"""Text that does not hold certain literals, as a grammar."""

from __future__ import annotations

from collections.abc import Collection, Iterable


def text_without(literals: Collection[str]) -> str:
    """An EBNF grammar of any text in which none of `literals`, none of them empty, stands.

    Its states are what the text may have begun of a literal, as in the algorithm of Aho and Corasick.
    """
    begun = sorted({literal[:size] for literal in literals for size in range(len(literal))}, key=len)
    state = {text: f"s{index}" for index, text in enumerate(begun)}
    letters = sorted({letter for literal in literals for letter in literal})
    rules = ["root ::= s0"]
    for text in begun:
        leads: dict[str, list[str]] = {}
        for letter in letters:
            end = text + letter
            if any(end.endswith(literal) for literal in literals):
                continue
            while end not in state:
                end = end[1:]
            leads.setdefault(state[end], []).append(letter)
        ways = [f"{_class(letters, others=True)} s0", *(f"{_class(some)} {name}" for name, some in leads.items())]
        rules.append(f'{state[text]} ::= "" | {" | ".join(ways)}')
    return "\n".join(rules)


def _class(letters: Iterable[str], *, others: bool = False) -> str:
    codes = "".join(f"\\U{ord(letter):08x}" for letter in letters)
    return f"[^{codes}]" if others else f"[{codes}]"
