"""Argument readers: the text of one call's arguments, as written, to JSON text as it arrives."""
