"""A causal language model on this machine. Only here are torch, transformers and xgrammar used."""
