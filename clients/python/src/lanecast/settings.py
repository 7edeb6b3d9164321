"""Settings of a client, addresses of servers, and the back-off between connections."""

from __future__ import annotations

import ipaddress
import random
import ssl
from dataclasses import dataclass, field
from typing import Callable, Optional, Sequence, Tuple, Union

PORT = 9007
"""The port of a server where none is given."""
WAIT_MAX = 24 * 60 * 60.0
"""The longest wait in seconds. Those of the system are bounded, too."""


@dataclass(frozen=True)
class Settings:
    """Settings of a client. Times are in seconds."""

    name: str = ""
    """The client's name; two connected clients cannot share one. A client with a name numbers
    its messages and sends unacknowledged ones again after a lost connection; the server
    publishes each once."""
    user: str = ""
    password: str = field(default="", repr=False)
    message_type: str = "json"
    """`json`, `nvfix`, `fix`, `xml` or `binary`."""
    acknowledge: str = "processed"
    """The acknowledgement that completes a published message: `processed`, or `persisted`, which
    needs a durable topic."""
    tls: Optional[ssl.SSLContext] = None
    """How to verify servers; by default `tcps://` verifies as the platform does."""
    timeout: float = 10.0
    """Longest time for connecting to an address of a server, for each answer, and for sending the
    rest at the end: a day at most."""
    heartbeat: Optional[int] = None
    """Interval of heartbeats. Three missed ones end a connection, at both ends: leave it None if
    the application may not call the client for longer than that."""
    reconnect: bool = True
    """Whether to reconnect after a lost connection."""
    delay_max: float = 5.0
    """The longest wait between two attempts to connect: a day at most."""
    queue_bytes_max: int = 64 << 20
    """Most bytes of unread events of one subscription; more ends it. Also the most bytes of an
    answer to a query; more fails it."""
    unacknowledged_max: int = 4_096
    """Most published messages without an acknowledgement."""
    on_state: Optional[Callable[[str, str], None]] = None
    """Called with `connected`, `waiting` or `failed`, and the reason."""

    def __post_init__(self) -> None:
        if self.acknowledge not in ("processed", "persisted"):
            raise ValueError("acknowledge is processed or persisted")
        if self.unacknowledged_max <= 0:
            raise ValueError("unacknowledged_max is more than 0")
        if not (0 < self.timeout <= WAIT_MAX and 0 < self.delay_max <= WAIT_MAX):
            raise ValueError("timeout and delay_max are more than 0, and a day (86400) at most")
        if self.heartbeat is not None and not 1 <= self.heartbeat <= 3_600:
            raise ValueError("heartbeat is 1 to 3600 seconds, or None")


@dataclass(frozen=True)
class Address:
    """Address of a server."""

    host: str
    port: int
    is_tls: bool

    @classmethod
    def parse(cls, text: str) -> Address:
        """Reads `host`, `host:port` or `[::1]:port`, with `tcp://` or `tcps://` before it and a
        path behind it or not."""
        scheme, mark, rest = text.partition("://")
        if not mark:
            scheme, rest = "tcp", text
        rest = rest.split("/", 1)[0]
        host, mark, port = rest.rpartition(":")
        if not mark or port.endswith("]"):
            host, port = rest, str(PORT)
        is_port = port.isascii() and port.isdigit() and int(port) < 1 << 16
        if scheme not in ("tcp", "tcps") or not is_port or not _is_host(host):
            example = (
                f"HOST or HOST:PORT, such as 127.0.0.1:{PORT} or [::1]:{PORT}, "
                "with tcps:// before it for TLS"
            )
            raise ValueError(f"{text!r} is not an address of a server: write it as {example}")
        host = host[1:-1] if host.startswith("[") else host
        return cls(host, int(port), scheme == "tcps")

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'tcps' if self.is_tls else 'tcp'}://{host}:{self.port}"

    def context(self, settings: Settings) -> Optional[ssl.SSLContext]:
        """TLS settings of the connection, or None."""
        if settings.tls is None and self.is_tls:
            return ssl.create_default_context()
        return settings.tls


def _is_host(text: str) -> bool:
    """Whether `text` is a name or an address. IPv6 needs brackets, to tell the port apart."""
    if not (text.startswith("[") and text.endswith("]")):
        return text != "" and not any(sign in ":@[]" or sign.isspace() for sign in text)
    try:
        ipaddress.IPv6Address(text[1:-1])
    except ValueError:
        return False
    return True


def addresses(servers: Union[str, Sequence[str]]) -> Tuple[Address, ...]:
    """Addresses of the servers, in the order in which they are tried."""
    texts = (servers,) if isinstance(servers, str) else tuple(servers)
    if not texts:
        raise ValueError("no server given")
    return tuple(Address.parse(text) for text in texts)


class Backoff:
    """Waits between attempts to connect: exponential, with jitter. Only a connection that lasted
    as long as the longest wait resets it; otherwise a server that ends each connection right
    after the logon would be asked without a pause."""

    FIRST = 0.05

    def __init__(self, delay_max: float) -> None:
        self._max = delay_max
        self._next = self.FIRST
        self._since: Optional[float] = None

    def delay(self) -> float:
        """The next wait, in seconds."""
        delay = min(self._next, self._max)
        self._next = min(self._next * 2, self._max)
        return delay * random.uniform(0.5, 1.0)

    def connected(self, now: float) -> None:
        """Records that a connection was established."""
        self._since = now

    def lost(self, now: float) -> None:
        """Records the end of the connection."""
        if self._since is not None and now - self._since >= self._max:
            self.reset()
        self._since = None

    def reset(self) -> None:
        """Starts again with the shortest wait."""
        self._next = self.FIRST
