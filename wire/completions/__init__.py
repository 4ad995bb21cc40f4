"""Chat completions asked as completions: the prompt is rendered here, and the upstream only goes on with it."""
