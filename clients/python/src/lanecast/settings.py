"""Who a client is, where its server is, and for how long it is patient."""

from __future__ import annotations

import ipaddress
import random
import ssl
from dataclasses import dataclass, field
from typing import Callable, Optional, Sequence, Tuple, Union

PORT = 9007
"""The port of a server where none is given."""


@dataclass(frozen=True)
class Settings:
    """How a client behaves. Times are in seconds."""

    name: str = ""
    """A name that no other client has at the same time. A client with a name numbers its
    messages, and sends those again that the server had not acknowledged when a connection
    broke; the server takes each of them once."""
    user: str = ""
    password: str = field(default="", repr=False)
    message_type: str = "json"
    """`json`, `nvfix`, `fix`, `xml` or `binary`."""
    acknowledge: str = "processed"
    """When a published message counts as taken: when it is `processed`, or when it is
    `persisted`, which asks for a topic that the server keeps on disk."""
    tls: Optional[ssl.SSLContext] = None
    """How servers are checked; for `tcps://` without it, as the platform does."""
    timeout: float = 10.0
    """How long connecting and each answer may take."""
    heartbeat: Optional[int] = None
    """Ask for a sign of life this often. Three that are missing end a connection, at both
    ends: do not ask for them if the application may keep away from the client for longer."""
    reconnect: bool = True
    """Connect again when a connection breaks."""
    delay_max: float = 5.0
    """The longest wait between two attempts to connect."""
    queue_bytes_max: int = 64 << 20
    """What may wait to be read of one subscription. One with more is ended."""
    unacknowledged_max: int = 4_096
    """So many messages may be published before the first of them is acknowledged."""
    on_state: Optional[Callable[[str, str], None]] = None
    """Called with `connected`, `waiting` or `failed`, and why."""

    def __post_init__(self) -> None:
        if self.acknowledge not in ("processed", "persisted"):
            raise ValueError("acknowledge is processed or persisted")
        if self.timeout <= 0 or self.delay_max <= 0 or self.unacknowledged_max <= 0:
            raise ValueError("timeout, delay_max and unacknowledged_max are more than 0")
        if self.heartbeat is not None and not 1 <= self.heartbeat <= 3_600:
            raise ValueError("heartbeat is 1 to 3600 seconds, or None")


@dataclass(frozen=True)
class Address:
    """Where a server is."""

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
                "with tcps:// before it if it is encrypted"
            )
            raise ValueError(f"{text!r} is no address of a server: write it as {example}")
        host = host[1:-1] if host.startswith("[") else host
        return cls(host, int(port), scheme == "tcps")

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'tcps' if self.is_tls else 'tcp'}://{host}:{self.port}"

    def context(self, settings: Settings) -> Optional[ssl.SSLContext]:
        """How the connection is encrypted, if it is."""
        if settings.tls is None and self.is_tls:
            return ssl.create_default_context()
        return settings.tls


def _is_host(text: str) -> bool:
    """A name, or numbers; those with colons stand in brackets, or they would end in a port."""
    if not (text.startswith("[") and text.endswith("]")):
        return text != "" and not any(sign in ":@[]" or sign.isspace() for sign in text)
    try:
        ipaddress.IPv6Address(text[1:-1])
    except ValueError:
        return False
    return True


def addresses(servers: Union[str, Sequence[str]]) -> Tuple[Address, ...]:
    """The servers to try, one after the other."""
    texts = (servers,) if isinstance(servers, str) else tuple(servers)
    if not texts:
        raise ValueError("no server is named")
    return tuple(Address.parse(text) for text in texts)


class Backoff:
    """How long to wait before connecting again: longer each time, and never just as long. Only a
    connection that lasted as long as the longest wait makes it short again: else a server that
    ends each connection after the logon would be asked at once, for ever."""

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
        """A connection was made."""
        self._since = now

    def lost(self, now: float) -> None:
        """It has ended."""
        if self._since is not None and now - self._since >= self._max:
            self.reset()
        self._since = None

    def reset(self) -> None:
        """A connection lasted."""
        self._next = self.FIRST
