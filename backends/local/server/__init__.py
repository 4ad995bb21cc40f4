"""The API over the engine: requests in, prompts, text out."""
