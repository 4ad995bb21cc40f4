"""Parser plugins written for vLLM, used here: `loading.load` reads a file or module of them, without vLLM.

What can be used is a parser that looks at text alone. Where it asks for a tokenizer or for token ids,
loading it is refused. A parser is used as it is, so whether it keeps the contract's laws is its own affair.
"""
