"""The format of the (imaginary) Acme models, and a stage; streamsieve finds both by entry points."""
