"""The OpenAI wire and the events of `parsers`, in both directions, without I/O.

One `Exchange` is one HTTP exchange; the shells in `middleware` and `sdk_patch` only move its bytes."""
