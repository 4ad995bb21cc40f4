"""The next token of each row, from its logits and its own parameters."""
