"""What a reply must be, held back until its thinking ends: grammars, gate, lint."""
