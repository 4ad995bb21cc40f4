"""The format keeps every law of streamsieve's, and its cases hold in every cut."""

from streamsieve_acme.formats import ACME

from streamsieve.parsers.conformance import Conformance


class TestAcme(Conformance):
    format = ACME
    cases = "../cases.jsonl"
