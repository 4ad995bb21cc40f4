"""One module a model family, each with its formats in `FORMATS`; the registry finds them here."""
