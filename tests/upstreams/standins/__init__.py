"""Stand-ins for the upstreams: what each one's documentation says of requests, with a model that obeys grammars."""
