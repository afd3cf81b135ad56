"""What a request may come to instead of an answer, beside an HTTP error or a broken connection."""

from __future__ import annotations


class WrongCall(Exception):
    """The request holds what must not be sent, or can not: every call with it would be wrong."""


class Unusable(Exception):
    """HTTP said 200, but the body is no answer: an error payload, not JSON, no choices."""


class Rejected(Exception):
    """The provider would not take the messages, nor take them with blank ones between."""


class CutOff(Exception):
    """There was no whole answer within the time-out, however much of it had come."""
