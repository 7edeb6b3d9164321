"""Errors of the package. Each names the attempt and the reason of its failure."""

from __future__ import annotations


class LanecastError(Exception):
    """The root of all errors of this package."""


class ConnectError(LanecastError):
    """No server could be reached."""


class ConnectionLost(LanecastError):
    """The connection was lost; the request may or may not have been executed."""


class Refused(LanecastError):
    """The server refused the request."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"{what}: the server says: {reason}")
        self.what = what
        """The request."""
        self.reason = reason
        """The server's reason."""


class OtherVersion(LanecastError):
    """The server speaks another version of the protocol."""

    def __init__(self, what: str, server: int, own: int) -> None:
        super().__init__(
            f"{what}: the server speaks version {server} of the command protocol, this client "
            f"version {own}: use one version of lanecast at both ends"
        )
        self.server = server
        """The server's version."""


class NameTaken(LanecastError):
    """Another program publishes under the same name."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"another program publishes as {name}: give each a name of its own, or the server "
            "takes their messages for repetitions"
        )
        self.name = name
        """The name."""


class NoAnswer(LanecastError):
    """No answer from the server in time."""

    def __init__(self, what: str, seconds: float) -> None:
        super().__init__(f"{what}: no answer within {seconds:g} s")


class ProtocolError(LanecastError):
    """The server sent invalid data. The connection is closed."""


class Overrun(LanecastError):
    """Too many unread bytes for a subscription, which has ended, or in an answer to a query."""


class Closed(LanecastError):
    """The client has been closed."""
