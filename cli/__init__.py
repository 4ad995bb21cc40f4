"""The command `streamsieve`: one module a command."""
