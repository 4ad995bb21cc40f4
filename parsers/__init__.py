"""Text to events, without I/O: formats, the machine that runs one, chains of stages, the registry of names.

Imports the standard library only."""
