"""Chat completions: what an upstream sends, sorted and written again."""
