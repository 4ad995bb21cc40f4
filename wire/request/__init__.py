"""A request on its way: whether it can be served, how its reply is read, what the upstream is asked."""
