"""A causal language model: loaded, looked at, refused where it cannot run here."""
