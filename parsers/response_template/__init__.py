"""The language of response templates: formats that a checkpoint's tokenizer describes as data."""
