"""A causal language model on this machine as a source of replies. Only here are torch, transformers and xgrammar used."""
