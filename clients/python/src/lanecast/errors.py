"""What can go wrong. Every error says what was tried, and why it did not work."""

from __future__ import annotations


class LanecastError(Exception):
    """The root of all errors of this package."""


class ConnectError(LanecastError):
    """No server could be reached."""


class ConnectionLost(LanecastError):
    """The connection has ended, and what was asked for may or may not have been done."""


class Refused(LanecastError):
    """The server does not do it."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"{what}: the server says: {reason}")
        self.what = what
        """What was asked for."""
        self.reason = reason
        """Why it is not done."""


class NoAnswer(LanecastError):
    """The server does not answer in time."""

    def __init__(self, what: str, seconds: float) -> None:
        super().__init__(f"{what}: no answer within {seconds:g} s")


class ProtocolError(LanecastError):
    """What the server sent makes no sense. The connection has been closed."""


class Overrun(LanecastError):
    """More came for a subscription than may wait for it. The subscription has ended."""


class Closed(LanecastError):
    """The client has been closed."""
