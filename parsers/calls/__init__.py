"""Call syntaxes: how a format writes a tool call's name and where its arguments begin and end."""
